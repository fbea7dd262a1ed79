#!/usr/bin/env bash
# hosts.sh - independent Docker hosts on one machine: what a live testbed leases.
#
#   hosts.sh up N                hosts 1..N, started side by side
#   hosts.sh add ID [CPU MEM]    one host, e.g. `add 4 1.0 2g`
#   hosts.sh start ID            boot a stopped or crashed host; its images are still there
#   hosts.sh stop ID             orderly shutdown, containers first
#   hosts.sh crash ID            power failure: unreachable at once (no connection is closed
#                                orderly), then SIGKILL to each of its processes
#   hosts.sh crash-daemon ID     SIGKILL to its dockerd; containers go on
#   hosts.sh freeze|thaw ID      it hangs; it goes on
#   hosts.sh rm ID               SIGKILL everything of it and delete what it has stored
#   hosts.sh down                rm all, and the bridge
#   hosts.sh status              size, state, memory in use, processes and containers of each
#   hosts.sh env                 `ID=tcp://ADDRESS:PORT` of each, on one line
#
# A host is a network namespace with an address of its own on the bridge, a cgroup with a CPU quota
# and a memory limit, and in both a dockerd with a store of its own. Daemon and containers share the
# limits, as on a real host, and everything that belongs to a host can be found in its cgroup.
# Settings: TIDEBENCH_LIVE_{STATE,PREFIX,SUBNET,REGISTRY_PORT,CPU,MEMORY}
set -euo pipefail
source "$(dirname "$0")/common.sh"

state=$live_state/hosts
port=2375 # plain HTTP: only the bridge leads there
cgroups=/sys/fs/cgroup
controllers=(cpu cpuacct cpuset memory pids freezer)
longest_socket=107 # characters of a unix socket's path

endpoint() { echo "$subnet.$((10 + $1))"; }
bytes() { numfmt --from=iec "${1^^}"; }
group() { echo "$cgroups/$1/$prefix/h$2"; } # CONTROLLER ID
answers() { http "http://$(endpoint "$1"):$port/_ping" >/dev/null 2>&1; }
ids() { ls "$state" 2>/dev/null | sed -n 's/^\([0-9][0-9]*\)$/\1/p' | sort -n; }
exists() { [ -f "$state/$1/size" ] || die "there is no host $1; there are: $(ids | xargs)"; }

network_up() { # ID
    local id=$1 namespace=$prefix$1 link=${prefix}v$1
    if ! [ -e "/run/netns/$namespace" ]; then
        ip netns add "$namespace"
        # With a random hardware address a host made anew is unreachable until its peers forget
        # the old one, which takes up to 40 s.
        ip link add "$link" type veth peer name eth0 \
            address "$(printf '02:00:00:54:%02x:%02x' $((id / 256)) $((id % 256)))" netns "$namespace"
        ip link set "$link" master "$bridge"
        ip -n "$namespace" link set lo up
        ip -n "$namespace" addr add "$(endpoint "$id")/24" dev eth0
        ip -n "$namespace" link set eth0 up
        ip -n "$namespace" route add default via "$address"
    fi
    ip link set "$link" up
}
network_down() { ip netns del "$prefix$1" 2>/dev/null || true; ip link del "${prefix}v$1" 2>/dev/null || true; }

limits_up() { # ID CPU MEMORY
    local id=$1 cpu=$2 memory one cores level
    memory=$(bytes "$3")
    for one in "${controllers[@]}"; do mkdir -p "$(group "$one" "$id")/daemon"; done
    # Together as much as four busy processes that are not in a group, else each program of this
    # machine would count as much as all hosts, and a busy one would leave them next to nothing.
    echo 4096 >"$cgroups/cpu/$prefix/cpu.shares"
    echo 100000 >"$(group cpu "$id")/cpu.cfs_period_us"
    awk -v cpu="$cpu" 'BEGIN {printf "%d\n", cpu * 100000}' >"$(group cpu "$id")/cpu.cfs_quota_us"
    echo "$memory" >"$(group memory "$id")/memory.limit_in_bytes"
    echo "$memory" >"$(group memory "$id")/memory.memsw.limit_in_bytes" 2>/dev/null || true
    # As many cores as the quota fills: spread over more, containers would never compete for one
    # and their CPU shares would mean nothing. Every level wants its cores before a process enters.
    cores=$(awk -v cpu="$cpu" -v all="$(nproc)" 'BEGIN {n = int(cpu); if (n < cpu) n++; if (n > all) n = all; print n}')
    for level in "$cgroups/cpuset/$prefix" "$(group cpuset "$id")" "$(group cpuset "$id")/daemon"; do
        cat "$cgroups/cpuset/cpuset.mems" >"$level/cpuset.mems"
        [ "$level" = "$cgroups/cpuset/$prefix" ] && cat "$cgroups/cpuset/cpuset.cpus" >"$level/cpuset.cpus" && continue
        for one in $(seq "$cores"); do echo $(((id + one) % $(nproc))); done | paste -sd, >"$level/cpuset.cpus"
    done
}
processes() { # ID: daemon, containerd, shims and containers
    find "$(group memory "$1")" "$(group freezer "$1")" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -un ||
        true # there are no groups yet when its boot was killed at once
}
limits_down() { # ID: containers make groups of further controllers, so look everywhere
    local one
    for one in "$cgroups"/*/"$prefix/h$1"; do
        [ -d "$one" ] && find "$one" -depth -type d -exec rmdir {} \; 2>/dev/null || true
    done
}
kill_all() { # ID: until none is left, because one may fork meanwhile
    local _ left
    freezer THAWED "$1" # the frozen do not die
    for _ in $(seq 100); do
        left=$(processes "$1")
        [ -n "$left" ] || return 0
        kill -KILL $left 2>/dev/null || true
        sleep 0.05
    done
    die "processes of host $1 do not end: $(echo $left)"
}
freezer() { # STATE ID
    local one folder
    folder=$(group freezer "$2")
    [ -d "$folder" ] || return 0 # its boot was killed before there was one
    find "$folder" -name freezer.state 2>/dev/null | while read -r one; do echo "$1" >"$one"; done
}
unmount() { # FOLDER: file systems and namespaces that crashed containers leave
    awk -v below="$1/" 'index($2, below) == 1 {print $2}' /proc/mounts | sort -r | while read -r one; do
        umount -l "$one" 2>/dev/null || true
    done
}

configure() { # ID CPU MEMORY
    local folder=$state/$1
    # The true size stands in labels: `docker info` shows the machine's.
    cat >"$folder/daemon.json" <<JSON
{
  "data-root": "$folder/data", "exec-root": "$folder/exec", "pidfile": "$folder/docker.pid",
  "hosts": ["tcp://$(endpoint "$1"):$port", "unix://$folder/docker.sock"], "tls": false,
  "storage-driver": "overlay2", "cgroup-parent": "/$prefix/h$1", "shutdown-timeout": 5,
  "exec-opts": ["native.cgroupdriver=cgroupfs"], "userland-proxy": false,
  "insecure-registries": ["$registry"], "max-concurrent-downloads": 3,
  "log-driver": "json-file", "log-opts": {"max-size": "1m", "max-file": "2"},
  "labels": ["host.id=$1", "host.cpu=$2", "host.memory=$(bytes "$3")"]
}
JSON
}
launch() { # ID: dockerd in the groups, the network and a host name of the host
    local folder=$state/$1 one
    for one in "${controllers[@]}"; do echo "$BASHPID" >"$(group "$one" "$1")/daemon/cgroup.procs"; done
    # nsenter, because `ip netns exec` mounts /sys anew and hides the cgroups.
    exec setsid nsenter --net="/run/netns/$prefix$1" unshare --uts \
        sh -c 'hostname "$1"; shift; exec "$@"' _ "$prefix-host-$1" \
        env -u TIDEBENCH_HELD_BY DOCKER_RAMDISK= dockerd --config-file "$folder/daemon.json" \
        </dev/null >"$folder/dockerd.log" 2>&1
}
start() { # ID
    local id=$1 folder=$state/$1 since_ms cpu memory child end_s
    exists "$id"
    read -r cpu memory <"$folder/size"
    [ -z "$(processes "$id")" ] || die "host $id, or what a killed daemon left of it, is running; stop or crash it first"
    since_ms=$(now_ms)
    bridge_up
    network_up "$id"
    limits_up "$id" "$cpu" "$memory"
    mkdir -p "$folder/data" "$folder/exec"
    rm -f "$folder/docker.pid" "$folder/exec/containerd/containerd.pid"
    configure "$id" "$cpu" "$memory"
    (launch "$id") &
    child=$! end_s=$((SECONDS + within_s))
    until answers "$id"; do
        running "$child" || { tail -n 5 "$folder/dockerd.log" >&2; die "dockerd of host $id ended"; }
        [ $SECONDS -lt $end_s ] || die "host $id does not answer within $within_s s; see $folder/dockerd.log"
        sleep 0.05
    done
    echo "host $id up tcp://$(endpoint "$id"):$port cpu=$cpu memory=$memory start_ms=$(($(now_ms) - since_ms))"
}
halt() { # ID: SIGTERM to dockerd, which stops its containers; then whatever is left
    local id=$1 pid _
    freezer THAWED "$id"
    if pid=$(daemon "$id"); then
        kill -TERM "$pid"
        for _ in $(seq 400); do running "$pid" || break; sleep 0.02; done
    fi
    kill_all "$id"
    clear "$id"
}
clear() { # ID: everything but its store
    unmount "$state/$1"
    network_down "$1"
    limits_down "$1"
    rm -rf "$state/$1/exec" "$state/$1"/docker.{sock,pid}
}
daemon() { # ID: the process of its dockerd, where that runs: a number may be somebody else's by now
    processes "$1" | grep -x "$(cat "$state/$1/docker.pid" 2>/dev/null)"
}
crash() { # ID
    exists "$1"
    ip link set "${prefix}v$1" down 2>/dev/null || true
    kill_all "$1"
    unmount "$state/$1"
}
remove() { # ID: the store is deleted in the background, which can take 20 s
    local since_ms gone=$state/.gone-$1-$$
    since_ms=$(now_ms)
    [ -d "$state/$1" ] || { echo "there is no host $1"; return 0; } # its boot may have been killed
    kill_all "$1"
    clear "$1"
    # Another one may have been quicker, or a machine that went down has left what was being deleted.
    mv "$state/$1" "$gone" 2>/dev/null || [ ! -d "$state/$1" ] || die "$state/$1 cannot be moved away"
    setsid nice rm -rf "$state"/.gone-* </dev/null >/dev/null 2>&1 &
    echo "host $1 removed ms=$(($(now_ms) - since_ms))"
}
add() { # ID [CPU MEMORY]
    local folder=$state/$1 socket
    [[ $1 =~ ^[0-9]+$ ]] && [ "$1" -ge 1 ] && [ "$1" -le 240 ] || die "the id of a host is 1 to 240, not $1"
    [ ! -d "$folder" ] || die "there is a host $1 already"
    socket=$folder/exec/containerd/containerd-debug.sock
    [ "${#socket}" -le $longest_socket ] || die "$live_state is too long a path for sockets; set TIDEBENCH_LIVE_STATE"
    mkdir -p "$folder"
    echo "${2:-${TIDEBENCH_LIVE_CPU:-0.5}} ${3:-${TIDEBENCH_LIVE_MEMORY:-1g}}" >"$folder/size"
    start "$1"
}
up() { # N
    local id children=() child failed=0
    bridge_up
    for id in $(seq "$1"); do
        if ! [ -d "$state/$id" ]; then
            add "$id" &
            children+=($!)
        elif [ -z "$(processes "$id")" ]; then
            start "$id" &
            children+=($!)
        fi
    done
    for child in "${children[@]}"; do wait "$child" || failed=1; done
    return $failed
}
down() {
    local id one children=() child failed=0
    for id in $(ids); do
        remove "$id" &
        children+=($!)
    done
    for child in "${children[@]}"; do wait "$child" || failed=1; done
    [ $failed = 0 ] || return 1 # what is known of a host that did not end stays
    for one in "$cgroups"/*/"$prefix"; do rmdir "$one" 2>/dev/null || true; done
    rm -rf "$state" # waits for what is still being deleted
    bridge_down
}
status() {
    local id cpu memory is containers used
    printf '%-4s %-24s %-5s %-7s %-8s %8s %10s %s\n' id endpoint cpu memory state used_mb processes containers
    for id in $(ids); do
        read -r cpu memory <"$state/$id/size"
        is=down containers=-
        if answers "$id"; then
            is=up
            containers=$(http "http://$(endpoint "$id"):$port/containers/json" | { grep -o '"Id":' || true; } | wc -l)
        elif [ -n "$(processes "$id")" ]; then
            is=silent
        fi
        used=$(cat "$(group memory "$id")/memory.usage_in_bytes" 2>/dev/null || echo 0)
        printf '%-4s %-24s %-5s %-7s %-8s %8s %10s %s\n' "$id" "tcp://$(endpoint "$id"):$port" "$cpu" "$memory" \
            "$is" $((used / 1048576)) "$(processes "$id" | wc -l)" "$containers"
    done
}

command=${1:-}
[ $# -eq 0 ] || shift
case $command in
    up | add | start | stop | crash | crash-daemon | freeze | thaw | rm | down)
        need_root
        need ip dockerd nsenter curl
        [ -d $cgroups/memory ] || die "needs cgroup v1 controllers below $cgroups; this machine has cgroup v2 only"
        ;;
esac
case $command in
    up) up "${1:?number of hosts}" ;;
    add) add "${1:?id}" "${2:-}" "${3:-}" ;;
    start) start "${1:?id}" ;;
    stop) exists "${1:?id}"; halt "$1"; echo "host $1 stopped" ;;
    crash) crash "${1:?id}"; echo "host $1 crashed" ;;
    crash-daemon)
        exists "${1:?id}"
        pid=$(daemon "$1") || die "no dockerd of host $1 runs"
        kill -KILL "$pid"
        echo "dockerd of host $1 killed" ;;
    freeze) exists "${1:?id}"; freezer FROZEN "$1" ;;
    thaw) exists "${1:?id}"; freezer THAWED "$1" ;;
    rm) remove "${1:?id}" ;;
    down) down ;;
    status) status ;;
    env) for id in $(ids); do echo "$id=tcp://$(endpoint "$id"):$port"; done | xargs ;;
    *) sed -n '2,/^[^#]/{/^#/p}' "$0"; exit 2 ;;
esac
