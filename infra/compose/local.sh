#!/usr/bin/env bash
# local.sh - the images that docker-compose.yaml starts from, made of Debian packages, and a Docker
# engine of their own: for a machine that cannot fetch images. As root, on Debian.
#
#   local.sh up        engine, base, services, wheels; what is there already stays. Creates .venv
#                      where there is none (make setup), because its pip makes the wheels
#   local.sh run CMD   run a command with this engine and these images, in its network, as
#                      `local.sh run make compose-up compose-try`
#   local.sh down      stop the engine with all its containers
#   local.sh purge     down, and delete images, volumes and all else that was made
#
# The engine has a network namespace: its bridges, firewall rules and published ports touch nothing
# of this machine. Packages come from where apt and pip of this machine get theirs; nothing of that
# stays in an image. Settings: TIDEBENCH_COMPOSE_STATE
set -euo pipefail
umask 022 # what is in an image is read by another user

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)
state=${TIDEBENCH_COMPOSE_STATE:-$repository/var/compose}
engine=$state/engine
namespace=tidebench-compose
suite=bookworm
export DOCKER_HOST=unix://$engine/docker.sock
export DOCKER_CONFIG=$state/cli
export PATH=$PATH:/usr/sbin:/sbin

say() { echo "$(date +%T) $*"; }
die() { echo "${0##*/}: $*" >&2; exit 1; }
need_root() { [ "$(id -u)" = 0 ] || die "needs root (it makes a network namespace and Debian images)"; }
need() {
    local one
    for one in "$@"; do
        command -v "$one" >/dev/null || die "there is no $one; apt-get install docker.io debootstrap iproute2 iptables"
    done
}
environment() { # its pip makes the wheels; that of a demo has none
    "$repository/.venv/bin/python" -m pip --version >/dev/null 2>&1 || bash "$repository/.ci/setup.sh" ||
        die "wheels are made with .venv, which make setup could not create; see above"
}
inside() { nsenter --net="/run/netns/$namespace" "$@"; }
answers() { docker version >/dev/null 2>&1; }
has() { docker image inspect "$1" >/dev/null 2>&1; }

engine_up() {
    answers && return 0
    local _
    mkdir -p "$engine"
    [ -e "/run/netns/$namespace" ] || ip netns add "$namespace"
    ip -n "$namespace" link set lo up
    rm -f "$engine/docker.pid"
    # cgroup-parent: everything that is limited here is found in one place.
    inside setsid env DOCKER_RAMDISK= dockerd --data-root "$engine/data" --exec-root "$engine/exec" \
        --pidfile "$engine/docker.pid" --host "$DOCKER_HOST" --cgroup-parent /$namespace \
        --exec-opt native.cgroupdriver=cgroupfs --storage-driver overlay2 --log-opt max-size=5m --log-opt max-file=2 \
        </dev/null >"$engine/dockerd.log" 2>&1 &
    for _ in $(seq 120); do
        answers && say "engine is up" && return 0
        sleep 0.25
    done
    die "dockerd does not answer; see $engine/dockerd.log"
}
engine_down() {
    local pid _
    pid=$(cat "$engine/docker.pid" 2>/dev/null || true)
    if [ -n "$pid" ] && grep -qs dockerd "/proc/$pid/comm"; then
        docker ps -q | xargs -r docker stop -t 20 >/dev/null || true
        kill -TERM "$pid"
        for _ in $(seq 240); do
            grep -qs '^State:[[:space:]]*[^ZX]' "/proc/$pid/status" || break
            sleep 0.25
        done
    fi
    # An engine that hangs, and what one that died has left: containers and their shims go on.
    { find /sys/fs/cgroup/$namespace /sys/fs/cgroup/*/$namespace -name cgroup.procs -exec cat {} + 2>/dev/null || true
      pgrep -f "^[^ ]*(dockerd|containerd)[^ ]* .*$engine/" || true; } | sort -u | xargs -r kill -KILL 2>/dev/null || true
    ip netns del "$namespace" 2>/dev/null || true
    find /sys/fs/cgroup/$namespace /sys/fs/cgroup/*/$namespace -depth -type d -exec rmdir {} \; 2>/dev/null || true
}

plugins() { # compose and buildx, which Debian has from trixie on; they run here as they are
    [ ! -x "$state/cli/cli-plugins/docker-compose" ] || return 0
    local apt=$state/apt mirror
    mkdir -p "$apt"/etc/{apt.conf.d,preferences.d} "$apt"/state/lists/partial "$apt/cache/archives/partial"
    touch "$apt/status"
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $suite" | sed -n 1p)
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" >"$apt/etc/sources.list"
    cat >"$apt/apt.conf" <<CONF
Dir::Etc "$apt/etc"; Dir::State "$apt/state"; Dir::State::status "$apt/status"; Dir::Cache "$apt/cache";
Acquire::Languages "none"; APT::Sandbox::User "root";
CONF
    (cd "$apt" && export APT_CONFIG=$apt/apt.conf && apt-get -qq update && apt-get -qq download docker-compose docker-buildx)
    find "$apt" -maxdepth 1 -name '*.deb' -exec dpkg -x {} "$apt/root" \;
    mkdir -p "$state/cli/cli-plugins"
    cp "$apt"/root/usr/libexec/docker/cli-plugins/* "$state/cli/cli-plugins/"
    echo '{}' >"$state/cli/config.json"
    rm -rf "$apt"
    say "compose $("$state/cli/cli-plugins/docker-compose" version --short) is here"
}

sources() {
    apt-get indextargets --format 'deb $(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' |
        grep " $suite[ -]" | sort -u
}
image() { # NAME PACKAGES COMMAND...: Debian with packages; the command prepares its root
    local name=$1 packages=$2 root=$state/root since_s=$SECONDS
    shift 2
    has "$name" && return 0
    # In memory: package tools sync each of thousands of files to disk.
    umount "$root" 2>/dev/null || true
    mkdir -p "$root"
    mount -t tmpfs -o size=2g tmpfs "$root"
    if [ -f "$state/minimal.tar" ]; then
        tar -xpf "$state/minimal.tar" -C "$root"
    else
        debootstrap --variant=minbase --include=ca-certificates,tini $suite "$root" \
            "$(sources | awk -v suite=$suite '$3 == suite {print $2; exit}')" >"$state/debootstrap.log" ||
            die "debootstrap failed; see $state/debootstrap.log"
        printf 'path-exclude=/usr/share/%s/*\n' doc man info locale >"$root/etc/dpkg/dpkg.cfg.d/slim"
        tar -cpf "$state/minimal.tar" -C "$root" .
    fi
    sources >"$root/etc/apt/sources.list"
    cat /etc/resolv.conf >"$root/etc/resolv.conf"
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
    chmod +x "$root/usr/sbin/policy-rc.d"
    mkdir -p "$root/usr/share/man/man1" # some packages want to link into it
    # Java's package reads /proc; a mount namespace of its own forgets it again.
    unshare --mount sh -ec 'root=$1; shift; mount -t proc proc "$root/proc"; exec chroot "$root" "$@"' _ "$root" \
        env DEBIAN_FRONTEND=noninteractive sh -ec 'apt-get -qq update
        apt-get -qq install -y --no-install-recommends "$@"' _ $packages >"$state/${name%%:*}.log" 2>&1 ||
        die "installing packages failed; see $state/${name%%:*}.log"
    rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/* "$root"/usr/share/{doc,man,info,locale}
    "$@" "$root"
    rm -f "$root/usr/sbin/policy-rc.d" "$root/etc/resolv.conf"
    : >"$root/etc/apt/sources.list"
    tar -cp -C "$root" . | docker import --change 'ENV LANG=C.UTF-8' - "$name" >/dev/null
    umount "$root"
    rmdir "$root"
    say "built $name in $((SECONDS - since_s)) s"
}
like_python() { # ROOT: what the image python:3.11-slim is called by
    ln -sf python3 "$1/usr/bin/python"
    rm -f "$1"/usr/lib/python3*/EXTERNALLY-MANAGED
}
like_services() { # ROOT: users and folders as the official images have them, and their entry points
    install -m 755 "$here/local-service.sh" "$1/usr/local/bin/local-service"
    chroot "$1" sh -ec 'groupadd -g 999 service; useradd -u 999 -g 999 -d /var/lib/rabbitmq -s /usr/sbin/nologin service
        rm -rf /var/lib/postgresql /var/lib/rabbitmq /etc/rabbitmq
        install -d -o 999 -g 999 /var/lib/postgresql/data /var/lib/rabbitmq /data /etc/rabbitmq/conf.d /var/log/rabbitmq
        ln -sf /usr/lib/rabbitmq/bin/* /usr/sbin/ # the wrappers know one user only
        install -d -m 1777 /var/run/postgresql; ln -s busybox /bin/wget 2>/dev/null || true'
}
download_wheels() { # of requirements.txt, and build those that there are none of
    local folder=$state/wheels inputs since_s=$SECONDS
    inputs=$(sha256sum <"$repository/requirements.txt")
    [ "$(cat "$state/wheels.inputs" 2>/dev/null)" != "$inputs" ] || return 0
    rm -rf "$folder"
    mkdir -p "$folder"
    "$repository/.venv/bin/python" -m pip --disable-pip-version-check wheel -qq --no-deps \
        --wheel-dir "$folder" -r "$repository/requirements.txt" 2>"$state/wheels.log"
    echo "$inputs" >"$state/wheels.inputs"
    say "wheels are here after $((SECONDS - since_s)) s"
}
wheels() { # an image that holds them and nothing else
    local since_s=$SECONDS
    cmp -s "$state/wheels.inputs" "$state/wheels.imported" && has tidebench-wheels:local && return 0
    tar -c -C "$state/wheels" . | docker import - tidebench-wheels:local >/dev/null
    cp "$state/wheels.inputs" "$state/wheels.imported"
    say "built tidebench-wheels:local in $((SECONDS - since_s)) s"
}

up() {
    need_root
    need dockerd debootstrap ip iptables
    environment
    mkdir -p "$state"
    download_wheels &
    local downloading=$!
    plugins
    engine_up
    image tidebench-base:local "python3 python3-pip openjdk-17-jre-headless procps" like_python
    image tidebench-services:local \
        "postgresql redis-server rabbitmq-server docker-registry busybox procps" like_services
    wait "$downloading" || die "downloading the wheels failed; see $state/wheels.log"
    wheels
}
run() {
    need_root
    [ -e "/run/netns/$namespace" ] || die "the engine is down; run $0 up"
    export COMPOSE_FILE=$repository/docker-compose.yaml:$here/local.yaml
    export BASE_IMAGE=tidebench-base:local WHEELS_IMAGE=tidebench-wheels:local PIP_NO_INDEX=1
    inside "$@"
}
purge() {
    need_root
    engine_down
    umount "$state/root" 2>/dev/null || true
    awk -v below="$state/" 'index($2, below) == 1 {print $2}' /proc/mounts | sort -r | xargs -r -n1 umount -l
    rm -rf "$state"
}

case ${1:-} in
    up) up ;;
    run) shift; run "$@" ;;
    down) need_root; engine_down ;;
    purge) purge ;;
    *) sed -n '2,/^[^#]/{/^#/p}' "$0"; exit 2 ;;
esac
