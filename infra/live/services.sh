#!/usr/bin/env bash
# services.sh - broker, shared state and image registry of a live testbed, as plain processes.
#
#   services.sh packages               install the Debian packages that are missing
#   services.sh up [NAME...]           start what is not running: registry redis rabbit
#   services.sh down [NAME...]         stop orderly (all: also the port mapper and the bridge)
#   services.sh down --purge           and delete what they have stored, secrets included
#   services.sh crash NAME             SIGKILL; `up NAME` starts it again with its data
#   services.sh freeze|thaw NAME       SIGSTOP, SIGCONT
#   services.sh ctl ARGUMENT...        rabbitmqctl for this broker
#   services.sh status                 what runs, as which process
#   services.sh env                    path of the file that tells programs where things are
#
# Everything listens on the address of the bridge, so containers of all hosts and programs of this
# machine use the same one. Passwords are generated once, kept in files that only root reads, and
# appear on no command line. The file `env` names has the administrators of broker and Redis;
# passwords of a run are derived from the master secret and stored nowhere.
# Settings: TIDEBENCH_LIVE_{STATE,PREFIX,SUBNET,AMQP_PORT,API_PORT,REDIS_PORT,REGISTRY_PORT,DIST_PORT,EPMD_PORT}
set -euo pipefail
source "$(dirname "$0")/common.sh"

state=$live_state/services
amqp_port=${TIDEBENCH_LIVE_AMQP_PORT:-5672}
api_port=${TIDEBENCH_LIVE_API_PORT:-15672}
redis_port=${TIDEBENCH_LIVE_REDIS_PORT:-6379}
dist_port=${TIDEBENCH_LIVE_DIST_PORT:-25672}
epmd_port=${TIDEBENCH_LIVE_EPMD_PORT:-14369}
api=http://$address:$api_port/api
all=(registry redis rabbit)
as_rabbit=(env HOME="$state/rabbit/home" ERL_EPMD_PORT="$epmd_port" RABBITMQ_CONF_ENV_FILE=/dev/null
    RABBITMQ_NODENAME="${prefix}mq@localhost")

packages() {
    local wanted=(docker.io runc docker-registry buildah debootstrap rabbitmq-server redis-server
        redis-tools prometheus iproute2 iptables curl procps) missing=() one
    for one in "${wanted[@]}"; do
        dpkg-query -W -f '${Status}' "$one" 2>/dev/null | grep -q '^install ok installed' || missing+=("$one")
    done
    [ "${#missing[@]}" -gt 0 ] || { echo "all packages are installed"; return; }
    need_root
    apt-get -qq update
    apt_install "${missing[@]}" >/dev/null
    echo "installed ${missing[*]}"
}

secret() { # FILE: make it once
    [ -s "$1" ] || (umask 077; head -c 32 /dev/urandom | sha256sum | cut -c1-48 >"$1")
}
secrets_up() {
    local admin=tidebench
    secret "$state/master.secret"
    secret "$state/rabbit.secret"
    secret "$state/redis.secret"
    (umask 077 # in its place at once: runs read it meanwhile
        cat >"$state/env.new" <<ENV
ADDRESS=$address
AMQP_PORT=$amqp_port
RABBIT_API=$api
RABBIT_ADMIN=$admin
RABBIT_PASSWORD=$(cat "$state/rabbit.secret")
REDIS_PORT=$redis_port
REDIS_ADMIN=$admin
REDIS_PASSWORD=$(cat "$state/redis.secret")
REGISTRY=$registry
MASTER_SECRET_FILE=$state/master.secret
ENV
        mv "$state/env.new" "$state/env"
        echo "machine $address login $admin password $(cat "$state/rabbit.secret")" >"$state/netrc")
}

pid_of() { cut -d' ' -f1 "$state/$1.pid"; }
alive() { # NAME
    local pid since
    read -r pid since 2>/dev/null <"$state/$1.pid" || return 1
    running "$pid" && [ "$(born "$pid")" = "$since" ]
}
wait_for() { # NAME SINCE_MS COMMAND...: until the command succeeds
    local name=$1 since_ms=$2 end_s=$((SECONDS + within_s))
    shift 2
    until "$@" >/dev/null 2>&1; do
        alive "$name" || { tail -n 5 "$state/$name.log" >&2; die "$name ended; see $state/$name.log"; }
        [ $SECONDS -lt $end_s ] || die "$name does not answer within $within_s s; see $state/$name.log"
        sleep 0.05
    done
    echo "$name up pid=$(pid_of "$name") start_ms=$(($(now_ms) - since_ms))"
}
launch() { # NAME COMMAND...: in the background, in a session of its own, its process noted
    local name=$1
    shift
    setsid "$@" </dev/null >>"$state/$name.log" 2>&1 9>&- &
    echo "$! $(born $!)" >"$state/$name.pid"
}

registry_up() {
    local since_ms; since_ms=$(now_ms)
    need docker-registry
    mkdir -p "$state/registry"
    cat >"$state/registry.yml" <<YML
version: 0.1
log: {level: warn, accesslog: {disabled: true}}
storage:
  filesystem: {rootdirectory: $state/registry}
  delete: {enabled: true}
http: {addr: "$registry"}
YML
    launch registry env OTEL_TRACES_EXPORTER=none docker-registry serve "$state/registry.yml"
    wait_for registry "$since_ms" http "http://$registry/v2/"
}

redis_answers() {
    [ "$(REDISCLI_AUTH=$(cat "$state/redis.secret") timeout 3 redis-cli --user tidebench -h "$address" -p "$redis_port" ping 2>/dev/null)" = PONG ]
}
redis_up() {
    local since_ms; since_ms=$(now_ms)
    need redis-server redis-cli
    mkdir -p "$state/redis"
    # Users of runs are added while it runs and saved to this file, so they outlive a crash.
    # `default` cannot log in but keeps its rights: with them Redis replays its own log when it
    # starts, and leaves out, with a line in its log only, what that user may not do.
    [ -s "$state/redis/users.acl" ] || (umask 077
        printf 'user default off resetpass ~* &* +@all\nuser tidebench on #%s ~* &* +@all\n' \
            "$(tr -d '\n' <"$state/redis.secret" | sha256sum | cut -d' ' -f1)" >"$state/redis/users.acl")
    # `appendfsync no` hands every write to the kernel before the client hears of it, so a killed
    # process loses nothing. `everysec` does not: while it syncs, writes wait up to two seconds in
    # the process. Only a failure of this machine loses more, and that ends every run anyway.
    cat >"$state/redis.conf" <<CONF
bind $address
port $redis_port
dir $state/redis
aclfile $state/redis/users.acl
protected-mode no
appendonly yes
appendfsync no
save ""
daemonize no
CONF
    launch redis redis-server "$state/redis.conf"
    wait_for redis "$since_ms" redis_answers
}

rabbit_conf() {
    (umask 077; cat >"$state/rabbit.conf" <<CONF
listeners.tcp.1 = $address:$amqp_port
management.tcp.ip = $address
management.tcp.port = $api_port
default_user = tidebench
default_pass = $(cat "$state/rabbit.secret")
default_user_tags.administrator = true
loopback_users = none
# A silent client is given up after two of its heartbeats; clients may ask for shorter ones.
heartbeat = 10
# Queue depths of the management API are as old as the smallest sampling period below.
collect_statistics_interval = 1000
management.sample_retention_policies.global.minute = 1
management.sample_retention_policies.basic.minute = 1
management.sample_retention_policies.detailed.10 = 1
# The machine is shared with the hosts: publishers wait at 1 GB, not at 40 % of all memory.
vm_memory_high_watermark.absolute = 1GB
disk_free_limit.absolute = 1GB
log.console = false
log.file.level = warning
CONF
    )
    echo '[rabbitmq_management].' >"$state/rabbit.plugins"
}
rabbit_up() {
    local since_ms; since_ms=$(now_ms)
    need rabbitmqctl epmd
    mkdir -p "$state/rabbit"/{home,data,log}
    rabbit_conf
    # Erlang's port mapper of our own: the one that RabbitMQ starts by itself would outlive it.
    alive epmd || launch epmd epmd -port "$epmd_port" -address 127.0.0.1
    # Not /usr/sbin/rabbitmq-server, which insists on the user rabbitmq and on /var/lib.
    launch rabbit "${as_rabbit[@]}" ERL_EPMD_ADDRESS=127.0.0.1 ERL_CRASH_DUMP_SECONDS=0 \
        RABBITMQ_DIST_PORT="$dist_port" RABBITMQ_CONFIG_FILE="$state/rabbit.conf" \
        RABBITMQ_ENABLED_PLUGINS_FILE="$state/rabbit.plugins" \
        RABBITMQ_MNESIA_BASE="$state/rabbit/data" RABBITMQ_LOG_BASE="$state/rabbit/log" \
        RABBITMQ_PID_FILE="$state/rabbit/pid" \
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-kernel inet_dist_use_interface {127,0,0,1} +S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none' \
        /usr/lib/rabbitmq/bin/rabbitmq-server
    # The management interface answers before the broker listens: ask it for the listener.
    wait_for rabbit "$since_ms" http --netrc-file "$state/netrc" "$api/health/checks/port-listener/$amqp_port"
}

tree() { local child; for child in $(pgrep -P "$1"); do tree "$child"; done; echo "$1"; }
stop() { # NAME SIGNAL: the noted process and its children, no other
    alive "$1" || { rm -f "$state/$1.pid"; return 0; }
    local pid since_ms processes one _
    pid=$(pid_of "$1") since_ms=$(now_ms) processes=$(tree "$(pid_of "$1")")
    if [ "$2" = KILL ]; then
        kill -KILL $processes 2>/dev/null || true
    else
        kill -"$2" "$pid" 2>/dev/null || true
    fi
    for _ in $(seq 300); do running "$pid" || break; sleep 0.05; done
    for one in $processes; do kill -KILL "$one" 2>/dev/null || true; done
    rm -f "$state/$1.pid"
    echo "$1 stopped ms=$(($(now_ms) - since_ms))"
}
known() { # NAME...
    local one
    for one in "$@"; do [[ " ${all[*]} " == *" $one "* ]] || die "no service $one; there are ${all[*]}"; done
}
up() {
    need_root
    need ip curl
    known "$@"
    mkdir -p "$state"
    chmod 700 "$state"
    bridge_up
    secrets_up
    local one
    [ $# -gt 0 ] || set -- "${all[@]}"
    for one in "$@"; do
        if alive "$one"; then echo "$one is up"; else "${one}_up"; fi
    done
}
down() {
    local purge=
    [ "${1:-}" != --purge ] || { purge=1; shift; }
    known "$@"
    local one
    if [ $# -gt 0 ]; then
        for one in "$@"; do stop "$one" TERM; done
        return 0
    fi
    for one in rabbit epmd redis registry; do stop "$one" TERM; done
    [ -z "$purge" ] || rm -rf "$state"
    bridge_down
}
signal() { # SIGNAL NAME
    known "$2"
    alive "$2" || die "$2 does not run"
    kill -"$1" $(tree "$(pid_of "$2")")
}

command=${1:-}
[ $# -eq 0 ] || shift
case $command in
    up | down | crash) # two would start it twice, and note the process that found its port taken
        mkdir -p "$live_state"
        exec 9>"$live_state/services.lock"
        flock -w 600 9 || die "another services.sh is at work" ;;
esac
case $command in
    packages) packages ;;
    up) up "$@" ;;
    down) down "$@" ;;
    crash) known "${1:?name of a service}"; stop "$1" KILL ;;
    freeze) signal STOP "${1:?name of a service}" ;;
    thaw) signal CONT "${1:?name of a service}" ;;
    ctl) "${as_rabbit[@]}" /usr/lib/rabbitmq/bin/rabbitmqctl "$@" ;;
    status)
        for one in "${all[@]}" epmd; do
            if alive "$one"; then echo "$one up pid=$(pid_of "$one")"; else echo "$one down"; fi
        done ;;
    env) echo "$state/env" ;;
    *) sed -n '2,/^[^#]/{/^#/p}' "$0"; exit 2 ;;
esac
