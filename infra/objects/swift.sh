#!/usr/bin/env bash
# swift.sh - an object store on this machine that speaks S3: OpenStack Swift, one copy of everything.
#
#   swift.sh up    install it, start it and wait until it answers; prints what a client needs
#   swift.sh down  stop it; what it stores stays
#
# Settings: TIDEBENCH_SWIFT_STATE (folder), TIDEBENCH_SWIFT_PORT (of 127.0.0.1; the next three as well)
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
state=${TIDEBENCH_SWIFT_STATE:-$(readlink -f "$here/../..")/var/swift}
port=${TIDEBENCH_SWIFT_PORT:-16080}
venv=$state/venv

die() { echo "swift.sh: $*" >&2; exit 1; }

install() {
    [ "$(cat "$venv/installed" 2>/dev/null)" != "$(sha256sum <"$here/requirements.txt")" ] || return 0
    python3 -m venv --clear "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt" ||
        die "its packages cannot be installed"
    sha256sum <"$here/requirements.txt" >"$venv/installed"
}
secret() { [ -s "$state/secret" ] || (umask 077; head -c 18 /dev/urandom | base64 | tr +/ -_ >"$state/secret"); cat "$state/secret"; }

common() { # PORT: of every server's configuration
    cat <<CONF
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = $1
swift_dir = $state/etc
devices = $state/data
mount_check = false
disable_fallocate = true
workers = 0
user = $(id -un)
log_address = $state/no-syslog
CONF
}
configure() {
    mkdir -p "$state"/{etc,data/one,log,run,cache}
    local name number=0
    [ -s "$state/etc/swift.conf" ] || cat >"$state/etc/swift.conf" <<CONF
[swift-hash]
swift_hash_path_suffix = $(head -c 9 /dev/urandom | base64 | tr +/ -_)
CONF
    (umask 077; { common "$port"; cat <<CONF
[pipeline:main]
pipeline = catch_errors cache listing_formats s3api tempauth copy slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
allow_account_management = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:s3api]
use = egg:swift#s3api
s3_acl = false
[filter:tempauth]
use = egg:swift#tempauth
user_tidebench_tests = $(secret) .admin
[filter:copy]
use = egg:swift#copy
[filter:slo]
use = egg:swift#slo
CONF
    } >"$state/etc/proxy-server.conf")
    for name in account container object; do
        number=$((number + 1))
        { common $((port + number)); cat <<CONF
[pipeline:main]
pipeline = $name-server
[app:$name-server]
use = egg:swift#$name
CONF
        } >"$state/etc/$name-server.conf"
        [ -s "$state/etc/$name.ring.gz" ] && continue
        (cd "$state/etc"
            "$venv/bin/swift-ring-builder" $name.builder create 4 1 0
            "$venv/bin/swift-ring-builder" $name.builder add "r1z1-127.0.0.1:$((port + number))/one" 1
            "$venv/bin/swift-ring-builder" $name.builder rebalance || [ $? = 1 ]) >"$state/log/ring-$name.log" 2>&1
    done
}
running() { [ -s "$state/run/$1.pid" ] && grep -qs "swift-$1-server" "/proc/$(cat "$state/run/$1.pid")/cmdline"; }
start() {
    local name
    for name in account container object proxy; do
        running $name || {
            PYTHONWARNINGS=ignore setsid "$venv/bin/swift-$name-server" "$state/etc/$name-server.conf" --verbose \
                </dev/null >"$state/log/$name.log" 2>&1 &
            echo $! >"$state/run/$name.pid"
        }
    done
}
await() {
    local end=$((SECONDS + 60))
    until curl -s -m 3 --noproxy '*' -o "$state/log/answer" "http://127.0.0.1:$port/info"; do
        [ $SECONDS -lt $end ] || { tail -n 20 "$state"/log/*.log >&2; die "it does not answer within 60 s"; }
        sleep 0.2
    done
}
up() {
    mkdir -p "$state"
    install
    configure
    start
    await
    echo "AWS_ACCESS_KEY_ID=tidebench:tests"
    echo "AWS_SECRET_ACCESS_KEY=$(secret)"
    echo "TIDEBENCH_SWIFT=127.0.0.1:$port"
}
down() {
    local name
    for name in proxy object container account; do
        ! running $name || kill "$(cat "$state/run/$name.pid")"
        rm -f "$state/run/$name.pid"
    done
}

case ${1:-} in
    up) up ;;
    down) down ;;
    *) sed -n '2,/^[^#]/{/^#/p}' "$0"; exit 2 ;;
esac
