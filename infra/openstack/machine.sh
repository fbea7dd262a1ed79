#!/usr/bin/env bash
# machine.sh - what stands in for the guest of a server: a Docker host of infra/live.
#
#   machine.sh spawn      a server as JSON on standard input: boot a host at its address, in the
#                         background, once its delay_s have passed
#   machine.sh destroy    the same: end that host, booted or not
#   machine.sh down       end all of them
#   machine.sh list       number and server of each
#
# Nova's driver calls it (lib/tb_openstack/nova_virt.py). Host number n of hosts.sh is at .<10+n>, so
# the address that Neutron has chosen is the number of the host.
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/../live/common.sh"

hosts=$repository/infra/live/hosts.sh
state=${TIDEBENCH_OPENSTACK_STATE:-$repository/var/openstack}/machines

field() { # JSON NAME: of a flat object; of a list its first entry
    sed -n 's/.*"'"$2"'": *\[\{0,1\}"\{0,1\}\([^",]*[^],"}]\).*/\1/p' <<<"$1"
}
end() { # NUMBER
    local boot='' when=''
    read -r boot when 2>/dev/null <"$state/$1.boot" || true
    [ -z "$when" ] || [ "$(born "$boot")" != "$when" ] ||
        kill -KILL -- "-$boot" 2>/dev/null || true # else it could go on making what ends here
    "$hosts" rm "$1"
    rm -f "$state/$1".{server,boot,log}
}
numbers() { ls "$state" 2>/dev/null | sed -n 's/^\([0-9]*\)\.server$/\1/p'; }
find() { # SERVER: the number of its machine
    local one
    for one in $(numbers); do [ "$(cat "$state/$one.server")" != "$1" ] || echo "$one"; done
}
spawn() { # JSON
    local number address
    address=$(field "$1" addresses)
    [[ $address == "$subnet".* ]] || die "$address is not in $subnet.0/24; were the network and the machine seeded with the same TIDEBENCH_LIVE_SUBNET?"
    number=$((${address##*.} - 10))
    mkdir -p "$state"
    # An address is given away again once its server is gone, whatever has become of the machine.
    [ ! -e "$state/$number.server" ] || end "$number"
    field "$1" id >"$state/$number.server"
    setsid bash -c 'sleep "$1"; shift; exec "$@"' _ "$(field "$1" delay_s)" \
        "$hosts" add "$number" "$(field "$1" cpu)" "$(field "$1" memory_mb)M" </dev/null >"$state/$number.log" 2>&1 &
    echo "$! $(born $!)" >"$state/$number.boot"
}

case ${1:-} in
    spawn) spawn "$(cat)" ;;
    destroy) for number in $(find "$(field "$(cat)" id)"); do end "$number"; done ;;
    down) for number in $(numbers); do end "$number" & done; wait ;;
    list) for number in $(numbers); do echo "$number $(cat "$state/$number.server")"; done ;;
    *) sed -n '2,/^[^#]/{/^#/p}' "$0"; exit 2 ;;
esac
