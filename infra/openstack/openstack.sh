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
#   openstack.sh hypervisor              what servers are in the control plane that is up, or was last
#   openstack.sh guests                  what there is of real guests: domains, processes, taps, folders
#
# Keystone, Placement, Glance, Neutron and Nova of OpenStack 2026.1 as wheels; MariaDB and RabbitMQ
# from Debian, on sockets and ports of their own. What they answer, store, schedule and limit is
# real. What a server is, TIDEBENCH_HYPERVISOR says when it is brought up:
#   stand-in   the default: no guest, and ports that lead nowhere. machine.sh starts a Docker host of
#              infra/live at the address that Neutron gave the server
#   qemu       a guest of Debian by Nova's libvirt driver, on an emulated processor (guests.sh)
#   kvm        the same on this machine's processor, where a guest really boots with it
# Each has data of its own. Settings: TIDEBENCH_HYPERVISOR, those of infra/live/common.sh, and
# TIDEBENCH_OPENSTACK_{STATE,VENV,PORT,PYTHON,WITHIN_S,MACHINE}; an empty MACHINE leaves servers of the
# stand-in without one.
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/../live/common.sh"

here=$repository/infra/openstack
state=$(realpath -m "${TIDEBENCH_OPENSTACK_STATE:-$repository/var/openstack}")
venv=${TIDEBENCH_OPENSTACK_VENV:-$state/venv} # may serve several states
python=${TIDEBENCH_OPENSTACK_PYTHON:-python3.11}
port=${TIDEBENCH_OPENSTACK_PORT:-15000} # and the next eight
within_s=${TIDEBENCH_OPENSTACK_WITHIN_S:-180} # for any one service
machine=${TIDEBENCH_OPENSTACK_MACHINE-$here/machine.sh}

# What is up, or was last, is what every command but `up` is about.
hypervisor=$(cat "$state/hypervisor" 2>/dev/null || echo stand-in)
case ${1:-} in install | up) hypervisor=${TIDEBENCH_HYPERVISOR:-stand-in} ;; esac
case $hypervisor in
    stand-in) data=$state/data ;;
    qemu | kvm) data=$state/data-$hypervisor ;;
    *) die "TIDEBENCH_HYPERVISOR is stand-in, qemu or kvm, not $hypervisor" ;;
esac

etc=$state/etc log=$state/log pids=$state/run
socket=$pids/mariadb.sock
longest_socket=107 # characters of a unix socket's path
declare -A port_of=([keystone]=$port [placement]=$((port + 1)) [glance]=$((port + 2))
    [neutron]=$((port + 3)) [nova]=$((port + 4)) [rabbitmq]=$((port + 5)) [epmd]=$((port + 7)))
rabbit_dist_port=$((port + 6)) clock_port=$((port + 8))
auth_url=http://127.0.0.1:$port/v3
apis=(keystone placement glance neutron nova)
all=(epmd mariadb rabbitmq "${apis[@]}" nova-conductor nova-scheduler nova-compute)
[ "$hypervisor" = stand-in ] || all+=(libvirtd clock)

since_ms=$(now_ms)
say() { local ms=$(($(now_ms) - since_ms)); printf '%3d.%d s  %s\n' $((ms / 1000)) $((ms % 1000 / 100)) "$*"; }
known() { # NAME...
    local one
    [ $# -gt 0 ] || die "name a service: ${all[*]}"
    for one in "$@"; do [[ " ${all[*]} " == *" $one "* ]] || die "no service $one; there are ${all[*]}"; done
}
source "$here/processes.sh"
source "$here/stores.sh"
source "$here/guests.sh"

seed() { # STEP ARGUMENT...: while it waits for a service, that service has to live
    local pid one
    (environment
        export OS_CLIENT_CONFIG_FILE=$state/clouds.yaml TB_PASSWORD=$password TB_WITHIN_S=$within_s TB_SUBNET=$subnet TB_HYPERVISOR=$hypervisor TB_GUEST=$guest TB_CLOCK=$address:$clock_port
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
    [ "$hypervisor" = stand-in ] || guests_install
}
up() {
    local one other
    [ "${#socket}" -le $longest_socket ] || die "$state is too long a path for sockets; set TIDEBENCH_OPENSTACK_STATE"
    other=$(cat "$state/hypervisor" 2>/dev/null || echo "$hypervisor")
    if [ "$other" != "$hypervisor" ] && pid_of nova-compute >/dev/null; then
        die "it is up with $other; run $0 down first"
    fi
    install
    echo "$hypervisor" >"$state/hypervisor"
    configure
    [ "$hypervisor" = stand-in ] || { guests_configure; bridge_up; }
    for one in "${all[@]}"; do pid_of "$one" >/dev/null || stop "$one"; done # what a crash has left
    say "starting databases and broker"
    databases_up
    [ "$hypervisor" = stand-in ] || { start libvirtd; start clock; }
    say "starting services"
    for one in keystone placement neutron glance nova; do start "$one"; done
    wait_for keystone
    seed identity keystone="${port_of[keystone]}" placement="${port_of[placement]}" \
        glance="${port_of[glance]}" neutron="${port_of[neutron]}" nova="${port_of[nova]}"
    wait_for rabbitmq
    [ "$hypervisor" = stand-in ] || wait_for libvirtd clock
    for one in nova-conductor nova-scheduler nova-compute; do start "$one"; done # they log in at once
    wait_for "${apis[@]}"
    say "seeding"
    seed cloud
    launcher_down
    say "up; a client needs: $(client)"
}
at_work() { # NAME: until then Nova puts into ERROR what is ordered
    case $1 in nova-compute | libvirtd) ! pid_of nova-compute >/dev/null || seed compute ;; esac
}
services_down() {
    local i
    for ((i = ${#all[@]} - 1; i > 2; i--)); do stop "${all[i]}" & done
    wait
    for i in rabbitmq mariadb epmd; do stop $i; done
}
down() {
    if [ "$hypervisor" != stand-in ]; then
        stop nova-compute
        guests_down
    fi
    services_down
    "$here/machine.sh" down
    [ "$hypervisor" = stand-in ] || bridge_down
    [ "${1:-}" != --purge ] || rm -rf "$state"/data{,-qemu,-kvm} "$log" "$state"/{libvirt,hypervisor,faults.json}
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
    hypervisor) echo "$hypervisor" ;;
    guests) guests ;;
    env) client ;;
    *) sed -n '2,/^[^#]/{/^#/p}' "$0"; exit 2 ;;
esac
