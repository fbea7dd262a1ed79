# Settings and helpers of the scripts here and in infra/openstack; sourced, not run.
# Everything that is kept lies below one directory and everything in the kernel (bridge, network
# namespaces, cgroups) carries one prefix, so two live testbeds can stand side by side.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)

live_state=$(realpath -ms "${TIDEBENCH_LIVE_STATE:-$repository/var/.live}")
prefix=${TIDEBENCH_LIVE_PREFIX:-tb}
subnet=${TIDEBENCH_LIVE_SUBNET:-10.78.0} # /24; .1 is this machine, .(10+id) are hosts
bridge=${prefix}br0
address=${TIDEBENCH_LIVE_ADDRESS:-$subnet.1} # of this machine; given: no bridge, hosts are in a cloud
registry_port=${TIDEBENCH_LIVE_REGISTRY_PORT:-5000}
registry=$address:$registry_port
within_s=120 # for a host or a service to answer
export PATH=$PATH:/usr/sbin:/sbin

now_ms() { date +%s%3N; }
die() { echo "${0##*/}: $*" >&2; exit 1; }
need_root() { [ "$(id -u)" = 0 ] || die "needs root (it makes network namespaces and cgroups)"; }
need() { # COMMAND...
    local one
    for one in "$@"; do
        command -v "$one" >/dev/null || die "there is no $one; run $here/services.sh packages"
    done
}
http() { curl -sf -m 3 --noproxy '*' "$@"; }

# `kill -0` also succeeds for a zombie, and in a container nobody may reap it for a while.
running() { # PID
    local state
    state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null) || return 1
    [ -n "$state" ] && [ "$state" != Z ] && [ "$state" != X ]
}

# A number is given to another process some day: when ours was born is noted with it.
born() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; } # PID

apt_install() { # PACKAGE...
    local policy=/usr/sbin/policy-rc.d
    # Debian starts what it installs; here everything is started by these scripts.
    if [ ! -e $policy ] || grep -qs '^# tidebench' $policy; then # ours, also of one that was killed
        trap "rm -f $policy" EXIT
        printf '#!/bin/sh\n# tidebench\nexit 101\n' >$policy
        chmod +x $policy
    fi
    DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install -y \
        --no-install-recommends "$@"
}
suite=bookworm # of images; its Python is 3.11, as this project's
sources() { # apt's lines for the suite, as this machine is configured
    apt-get indextargets --format 'deb $(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' |
        grep " $suite[ -]" | sort -u
}
mirror() { sources | awk -v suite=$suite '$3 == suite {print $2; exit}'; }

bridge_up() {
    [ -z "${TIDEBENCH_LIVE_ADDRESS:-}" ] || return 0
    if ! ip link show "$bridge" >/dev/null 2>&1; then
        ip link add "$bridge" type bridge 2>/dev/null || true
        ip link set "$bridge" up
    fi
    [ -n "$(ip -o addr show dev "$bridge" to "$address/32")" ] ||
        ip addr add "$address/24" dev "$bridge" 2>/dev/null || true
    # Another Docker on this machine may have set FORWARD to DROP: hosts could not reach each other.
    if [ "$(cat /proc/sys/net/bridge/bridge-nf-call-iptables 2>/dev/null || echo 0)" = 1 ]; then
        iptables -w -C FORWARD -i "$bridge" -o "$bridge" -j ACCEPT 2>/dev/null ||
            iptables -w -I FORWARD -i "$bridge" -o "$bridge" -j ACCEPT
    fi
}
bridge_down() { # unless hosts or services still use it, also those of another checkout
    [ -z "${TIDEBENCH_LIVE_ADDRESS:-}" ] || return 0
    [ -z "$(ls -d "$live_state"/hosts/[0-9]* "$live_state"/services/*.pid 2>/dev/null)" ] || return 0
    [ -z "$(ls "/sys/class/net/$bridge/brif" 2>/dev/null)" ] || return 0
    [ -z "$(ss -ltnH "src = $address")" ] || return 0
    iptables -w -D FORWARD -i "$bridge" -o "$bridge" -j ACCEPT 2>/dev/null || true
    ip link del "$bridge" 2>/dev/null || true
}
