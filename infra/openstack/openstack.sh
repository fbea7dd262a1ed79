#!/usr/bin/env bash
# openstack.sh - a real OpenStack control plane on the loopback of one machine.
#
#   openstack.sh install                 packages and wheels, where they are missing
#   openstack.sh up                      install, start and seed what is missing
#   openstack.sh down [--purge]          end services and machines; with --purge delete the data
#   openstack.sh status                  each service, its state, process and port
#   openstack.sh start|stop|restart NAME...   single services, to see what their failure does
#   openstack.sh freeze|thaw NAME...     SIGSTOP, SIGCONT: alive, but it answers nobody
#   openstack.sh fault '{...}'|none      have services fail or dawdle; see lib/tb_openstack/faults.py
#   openstack.sh quota NAME=N...|default limits of the project: instances, cores, ram, ports
#   openstack.sh env                     the lines that point a client here
#
# Keystone, Placement, Glance, Neutron and Nova of OpenStack 2026.1 as wheels; MariaDB and RabbitMQ
# from Debian, on sockets and ports of their own. What they answer, store, schedule and limit is
# real. Servers are not: Nova's fake driver has no guests, and Neutron's ports lead nowhere. In place
# of a guest machine.sh starts a Docker host of infra/live at the address that Neutron gave it.
# Settings: TIDEBENCH_OPENSTACK_{STATE,VENV,PORT,PYTHON,WITHIN_S,MACHINE} and those of
# infra/live/common.sh. TIDEBENCH_OPENSTACK_MACHINE= (empty) leaves servers without a machine.
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/../live/common.sh"

here=$repository/infra/openstack
state=$(realpath -m "${TIDEBENCH_OPENSTACK_STATE:-$repository/var/openstack}")
venv=${TIDEBENCH_OPENSTACK_VENV:-$state/venv} # may serve several states
python=${TIDEBENCH_OPENSTACK_PYTHON:-python3.11}
port=${TIDEBENCH_OPENSTACK_PORT:-15000} # and the next seven
within_s=${TIDEBENCH_OPENSTACK_WITHIN_S:-180} # for any one service
machine=${TIDEBENCH_OPENSTACK_MACHINE-$here/machine.sh}

etc=$state/etc log=$state/log pids=$state/run data=$state/data
socket=$pids/mariadb.sock
longest_socket=107 # characters of a unix socket's path
declare -A port_of=([keystone]=$port [placement]=$((port + 1)) [glance]=$((port + 2))
    [neutron]=$((port + 3)) [nova]=$((port + 4)) [rabbitmq]=$((port + 5)) [epmd]=$((port + 7)))
rabbit_dist_port=$((port + 6))
auth_url=http://127.0.0.1:$port/v3
apis=(keystone placement glance neutron nova)
all=(epmd mariadb rabbitmq "${apis[@]}" nova-conductor nova-scheduler nova-compute)

since_ms=$(now_ms)
say() { local ms=$(($(now_ms) - since_ms)); printf '%3d.%d s  %s\n' $((ms / 1000)) $((ms % 1000 / 100)) "$*"; }
known() { # NAME...
    local one
    [ $# -gt 0 ] || die "name a service: ${all[*]}"
    for one in "$@"; do [[ " ${all[*]} " == *" $one "* ]] || die "no service $one; there are ${all[*]}"; done
}

# ---------------------------------------------------------------- processes

# A number is given to another process some day: when ours was born is noted with it.
born() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
pid_of() { # NAME: of a service that runs
    local pid when
    read -r pid when 2>/dev/null <"$pids/$1.pid" || return 1
    running "$pid" && [ "$(born "$pid")" = "$when" ] && echo "$pid"
}
members() { # GROUP: processes of it that are not zombies
    ps -e -o pid=,pgid=,stat= | awk -v group="$1" '$2 == group && $3 !~ /^Z/ {print $1}'
}

# How a service is run, into the array command; of a Python service what tb_openstack.launch gets.
command_of() { # NAME
    case $1 in
        epmd) command=(epmd -port "${port_of[epmd]}") ;;
        mariadb) command=(mariadbd "--defaults-file=$etc/my.cnf") ;;
        rabbitmq) command=(/usr/lib/rabbitmq/bin/rabbitmq-server) ;;
        nova) command=(nova "${port_of[nova]}" nova.wsgi.osapi_compute) ;;
        nova-compute) command=("$1" --config-file "$etc/nova.conf") ;;
        nova-*) command=("$1" --config-file "$etc/nova.conf" --config-file "$etc/nova-db.conf") ;;
        *) command=("$1" "${port_of[$1]}" "$1.wsgi.api") ;;
    esac
}
environment() { # of every service: nothing of the caller's may leak in
    unset "${!OS_@}" "${!RABBITMQ_@}" "${!AIRFLOW_@}"
    export HOME=$state/home PYTHONPATH=$here/lib PYTHONUNBUFFERED=1 PYTHONWARNINGS=ignore
    export TIDEBENCH_OPENSTACK_STATE=$state TB_FAULTS=$state/faults.json TB_MACHINE=$machine TB_RABBIT=127.0.0.1:${port_of[rabbitmq]} TB_SECRET=$state/secret
    export OS_KEYSTONE_CONFIG_DIR=$etc OS_PLACEMENT_CONFIG_DIR=$etc OS_GLANCE_CONFIG_DIR=$etc
    export OS_NOVA_CONFIG_FILES="$venv/etc/nova/api-paste.ini;$etc/nova.conf;$etc/nova-db.conf"
    export OS_NEUTRON_CONFIG_DIR=$etc OS_NEUTRON_CONFIG_FILES=neutron.conf OS_NOVA_DISABLE_EVENTLET_PATCHING=1
    export ERL_CRASH_DUMP_SECONDS=0 ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT=${port_of[epmd]}
    export RABBITMQ_NODENAME=tbos${port_of[rabbitmq]}@localhost RABBITMQ_CONF_ENV_FILE=/dev/null
    export RABBITMQ_CONFIG_FILE=$etc/rabbitmq.conf RABBITMQ_ENABLED_PLUGINS_FILE=$etc/rabbitmq-plugins
    export RABBITMQ_MNESIA_BASE=$data/rabbitmq RABBITMQ_LOG_BASE=$log RABBITMQ_DIST_PORT=$rabbit_dist_port
    export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-kernel inet_dist_use_interface {127,0,0,1} +sbwt none'
}
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# During `up` Python services are forks of one process that has imported what they share.
launcher='' to_launcher=''
launcher_up() {
    exec {to_launcher}> >(environment; cd "$state"; exec 9>&- "$venv/bin/python" -m tb_openstack.launch >"$log/launch.log" 2>&1)
    launcher=$!
}
launcher_down() { exec {to_launcher}>&-; launcher='' to_launcher=''; }
start() { # NAME
    local name=$1 at=${port_of[$1]:-}
    pid_of "$name" >/dev/null && return
    command_of "$name"
    if [ -n "$at" ] && listens "$at"; then die "port $at of $name is taken; set TIDEBENCH_OPENSTACK_PORT"; fi
    rm -f "$pids/$name.pid"
    case $name in
        mariadb) rm -f "$socket" ;; # of one that was killed: that it is there means ready
        epmd | rabbitmq) ;;
        *)
            if [ -n "$launcher" ]; then
                (IFS=$'\t'; echo "$pids/$name.pid"$'\t'"$log/$name.log"$'\t'"${command[*]}" >&"$to_launcher")
                return
            fi
            command=("$venv/bin/python" -m tb_openstack.launch "${command[@]}") ;;
    esac
    # In a process group of its own, so that stopping it reaches its children.
    (environment; cd "$state"; exec 9>&-; [ -z "$to_launcher" ] || exec {to_launcher}>&-
        exec setsid "${command[@]}" </dev/null >>"$log/$name.log" 2>&1) &
    echo "$! $(born $!)" >"$pids/$name.pid"
}
alive() { # NAME: it runs, or the launcher has yet to fork it
    pid_of "$1" >/dev/null || { [ -n "$launcher" ] && [ ! -e "$pids/$1.pid" ] && running "$launcher"; }
}
answers() { # NAME
    case $1 in
        mariadb) [ -S "$socket" ] ;;
        nova-*) true ;; # Nova itself knows, and seeding asks it
        *) listens "${port_of[$1]}" ;;
    esac
}
wait_for() { # NAME...
    local one deadline
    for one in "$@"; do
        deadline=$((SECONDS + within_s))
        until answers "$one"; do
            alive "$one" || { tail -n 25 "$log/$one.log" >&2; die "$one ended; see $log/$one.log"; }
            [ $SECONDS -lt $deadline ] || die "$one does not answer within $within_s s; see $log/$one.log"
            sleep 0.1
        done
    done
}
stop() { # NAME: its group, politely for a while
    local name=$1 group limit=30 # tenths of a second
    case $name in mariadb | rabbitmq) limit=200 ;; esac
    read -r group _ 2>/dev/null <"$pids/$name.pid" || return 0
    if pid_of "$name" >/dev/null || [ ! -e "/proc/$group" ]; then # else the number is somebody else's
        kill -CONT -- "-$group" 2>/dev/null || true
        kill -TERM -- "-$group" 2>/dev/null || true
        while [ -n "$(members "$group")" ]; do
            [ $((limit -= 1)) -gt 0 ] || { kill -KILL -- "-$group" 2>/dev/null || true; sleep 0.2; break; }
            sleep 0.1
        done
    fi
    rm -f "$pids/$name.pid"
}

# ------------------------------------------------------------- installation

packages() {
    local wanted=() policy=/usr/sbin/policy-rc.d ours=
    [ -x /usr/lib/rabbitmq/bin/rabbitmq-server ] || wanted+=(rabbitmq-server)
    [ -x /usr/sbin/mariadbd ] || wanted+=(mariadb-server-core)
    [ ${#wanted[@]} -gt 0 ] || return 0
    # Debian starts what it installs; here everything is started by these scripts.
    [ -e $policy ] || { ours=1; printf '#!/bin/sh\nexit 101\n' >$policy; chmod +x $policy; }
    DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install -y \
        --no-install-recommends "${wanted[@]}" >"$log/apt.log" 2>&1 </dev/null || ours+=failed
    case $ours in 1*) rm -f $policy ;; esac
    case $ours in *failed) tail -n 5 "$log/apt.log" >&2; die "apt-get failed; is apt-get update due?" ;; esac
}
wheels() {
    if ! cmp -s "$here/requirements.txt" "$venv/.installed"; then
        if command -v uv >/dev/null; then
            [ -x "$venv/bin/python" ] || uv venv -q --allow-existing --python "$python" "$venv"
            uv pip install -q --python "$venv/bin/python" -r "$here/requirements.txt"
        else
            [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
            "$venv/bin/pip" install -q -r "$here/requirements.txt"
        fi >"$log/pip.log" 2>&1 || { tail -n 5 "$log/pip.log" >&2; die "the wheels cannot be installed"; }
        cp "$here/requirements.txt" "$venv/.installed"
    fi
    local packages
    packages=$(echo "$venv"/lib/python3.*/site-packages)
    # Between two looks for the answer of a remote call oslo.messaging sleeps half a second, around a
    # defect of eventlet that is not used here (Launchpad 2035113); a boot makes ten such calls.
    sed -i 's/time\.sleep(0\.5)/time.sleep(0.01)/' "$packages/oslo_messaging/_drivers/amqpdriver.py"
    cp "$here/lib/tb_openstack/nova_virt.py" "$packages/nova/virt/tb.py" # Nova loads drivers from its own
}

# ------------------------------------------------------------ configuration

secret() { # of every account: made once
    [ -s "$state/secret" ] || (umask 077; head -c 32 /dev/urandom | sha256sum | cut -c1-40 >"$state/secret")
    cat "$state/secret"
}
database() { echo "mysql+pymysql://tb:$password@localhost/$1?unix_socket=$socket&charset=utf8mb3"; }
account() { # SECTION: the service account, as keystoneauth reads it
    printf '[%s]\n' "$1"
    cat <<CONF
auth_type = password
auth_url = $auth_url
username = tb-service
password = $password
project_name = service
user_domain_id = default
project_domain_id = default
region_name = RegionOne
CONF
}
common() { # [DATABASE]: what all services share
    [ $# = 0 ] || printf '[database]\nconnection = %s\nmax_retries = -1\n' "$(database "$1")"
    cat <<CONF
[oslo_concurrency]
lock_path = $pids/locks
[oslo_messaging_notifications]
driver = noop
$(account keystone_authtoken)
www_authenticate_uri = $auth_url
interface = public
service_token_roles_required = true
CONF
}
configure() { # the files of etc/ are templates: this shell fills in variables and $(...)
    local one transport=rabbit://tb:$password@127.0.0.1:${port_of[rabbitmq]}/
    for one in "$here"/etc/*; do
        (umask 077; eval "cat <<__END__
$(<"$one")
__END__" >"$etc/${one##*/}")
    done
    mv "$etc/clouds.yaml" "$state/clouds.yaml"
}

# ---------------------------------------------------------------- databases

new_data() { # CACHE: an empty store with schemas, or a MariaDB with nothing in it
    local sql=/usr/share/mysql
    services_down # of an `up` that was interrupted
    rm -rf "$data"
    mkdir -p "$data"/{mariadb,glance/images,glance/staging,glance/tasks,nova,neutron}
    if [ -s "$1" ]; then tar -xzf "$1" -C "$data"; return; fi
    { printf 'create database mysql;\nuse mysql;\n'
      cat $sql/mysql_system_tables.sql $sql/mysql_performance_tables.sql $sql/mysql_system_tables_data.sql
    } | mariadbd "--defaults-file=$etc/my.cnf" --bootstrap --skip-init-file >"$log/mariadb-install.log" 2>&1
}
schema() { # SERVICE CONFIG...
    (environment; export TB_PASSWORD=$password TB_AUTH_URL=$auth_url
        exec "$venv/bin/python" -m tb_openstack.schema "$@") </dev/null >"$log/schema-$1.log" 2>&1 ||
        { tail -n 25 "$log/schema-$1.log" >&2; die "the schema of $1 failed; see $log/schema-$1.log"; }
}
schemas() {
    local folder key children=() child failed=0
    for folder in fernet credential; do # what `keystone-manage fernet_setup` would write
        mkdir -p "$data/keystone/$folder"
        for key in 0 1; do
            [ -s "$data/keystone/$folder/$key" ] ||
                head -c 32 /dev/urandom | base64 | tr +/ -_ >"$data/keystone/$folder/$key"
        done
    done
    schema neutron "$etc/neutron.conf" & children+=($!)
    schema nova "$etc/nova.conf" "$etc/nova-db.conf" & children+=($!)
    schema keystone "$etc/keystone.conf" & children+=($!)
    schema glance "$etc/glance-api.conf" & children+=($!)
    schema placement "$etc/placement.conf" & children+=($!)
    for child in "${children[@]}"; do wait "$child" || failed=1; done
    [ $failed = 0 ] || die "the databases could not be set up"
}
databases_up() {
    local key cache
    # Migrating is the slow part of the first time: the outcome is kept beside the environment.
    key=$({ cat "$here/requirements.txt" "$here/lib/tb_openstack/schema.py"; mariadbd --version; echo "$password"; } | sha256sum | cut -c1-16)
    cache=$venv/schemas-$key.tar.gz
    [ -e "$data/schema" ] || new_data "$cache"
    start epmd; start rabbitmq; start mariadb
    launcher_up
    wait_for mariadb
    [ "$(cat "$data/schema" 2>/dev/null)" != "$key" ] || return 0
    say "creating schemas"
    schemas
    if [ ! -e "$data/schema" ]; then # nothing is in there but the schemas
        stop mariadb
        echo "$key" >"$data/schema"
        tar -cf - -C "$data" mariadb keystone schema | gzip -1 >"$cache.$$"
        mv "$cache.$$" "$cache"
        start mariadb
        wait_for mariadb
    fi
    echo "$key" >"$data/schema"
}

# ----------------------------------------------------------------- commands

seed() { # STEP ARGUMENT...: while it waits for a service, that service has to live
    local pid one
    (environment
        export OS_CLIENT_CONFIG_FILE=$state/clouds.yaml TB_PASSWORD=$password TB_WITHIN_S=$within_s TB_SUBNET=$subnet
        PYTHONPATH=$PYTHONPATH:$repository exec "$venv/bin/python" -m tb_openstack.seed "$@") &
    pid=$!
    while running $pid; do
        for one in "${all[@]}"; do
            [ ! -e "$pids/$one.pid" ] || pid_of "$one" >/dev/null ||
                { kill $pid 2>/dev/null; tail -n 25 "$log/$one.log" >&2; die "$one ended; see $log/$one.log"; }
        done
        sleep 0.2
    done
    wait $pid || die "seeding failed: $*"
}
install() {
    local one children=() failed=0
    need_root
    say "installing"
    packages & children+=($!)
    mkdir -p "$venv"
    (flock 8; wheels) 8>"$venv.lock" & children+=($!)
    for one in "${children[@]}"; do wait "$one" || failed=1; done
    [ $failed = 0 ] || exit 1
}
up() {
    local one
    [ "${#socket}" -le $longest_socket ] || die "$state is too long a path for sockets; set TIDEBENCH_OPENSTACK_STATE"
    install
    configure
    for one in "${all[@]}"; do pid_of "$one" >/dev/null || stop "$one"; done # what a crash has left
    say "starting databases and broker"
    databases_up
    say "starting services"
    for one in keystone placement neutron glance nova; do start "$one"; done
    wait_for keystone
    seed identity keystone="${port_of[keystone]}" placement="${port_of[placement]}" \
        glance="${port_of[glance]}" neutron="${port_of[neutron]}" nova="${port_of[nova]}"
    wait_for rabbitmq
    for one in nova-conductor nova-scheduler nova-compute; do start "$one"; done # they log in at once
    wait_for "${apis[@]}"
    say "seeding"
    seed cloud
    launcher_down
    say "up; a client needs: $(client)"
}
at_work() { [ "$1" != nova-compute ] || seed compute; } # until then it puts into ERROR what is ordered
services_down() {
    local i
    for ((i = ${#all[@]} - 1; i > 2; i--)); do stop "${all[i]}" & done
    wait
    for i in rabbitmq mariadb epmd; do stop $i; done
}
down() {
    services_down
    "$here/machine.sh" down
    [ "${1:-}" != --purge ] || rm -rf "$data" "$log" "$state/faults.json"
    say "down"
}
status() {
    local one pid is failed=0
    for one in "${all[@]}"; do
        is=down pid=
        if pid=$(pid_of "$one"); then
            if answers "$one"; then is=up; else is=starting; fi
            ! grep -q '^State:.T' "/proc/$pid/status" || is=frozen
        fi
        [ $is = up ] || failed=1
        printf '%-15s %-9s %-8s %s\n' "$one" "$is" "${pid:--}" "${port_of[$one]:-}"
    done
    return $failed
}
signal() { # SIGNAL NAME
    local pid
    pid=$(pid_of "$2") || die "$2 does not run"
    kill "-$1" -- "-$pid"
}
fault() { # JSON|none
    if [ "$1" = none ]; then rm -f "$state/faults.json"; return; fi
    echo "$1" >"$state/faults.json.new"
    mv "$state/faults.json.new" "$state/faults.json"
}
client() { echo "OS_CLIENT_CONFIG_FILE=$state/clouds.yaml OS_CLOUD=tidebench"; }

mkdir -p "$etc" "$log" "$pids/locks" "$state/home"
chmod 700 "$state"
command=${1:-}
[ $# -eq 0 ] || shift
case $command in
    install | up | down | start | stop | restart)
        exec 9>"$pids/lock"
        flock -w 600 9 || die "another openstack.sh is at work" ;;
esac
password=$(secret)
case $command in
    install) install ;;
    up) up ;;
    down) down "$@" ;;
    status) status ;;
    start) known "$@"; for one in "$@"; do start "$one"; wait_for "$one"; at_work "$one"; done ;;
    stop) known "$@"; for one in "$@"; do stop "$one"; done ;;
    restart) known "$@"; for one in "$@"; do stop "$one"; start "$one"; wait_for "$one"; at_work "$one"; done ;;
    freeze) known "$@"; for one in "$@"; do signal STOP "$one"; done ;;
    thaw) known "$@"; for one in "$@"; do signal CONT "$one"; done ;;
    fault) fault "${1:?rules as JSON, or none}" ;;
    quota) seed quota "$@" ;;
    env) client ;;
    *) sed -n '2,/^[^#]/{/^#/p}' "$0"; exit 2 ;;
esac
