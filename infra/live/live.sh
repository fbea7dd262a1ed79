#!/usr/bin/env bash
# live.sh - a short experiment on real hosts, containers and queues, and the end of everything live.
#
#   live.sh run     measure include/experiment/specs/live.yaml by the command line, then its run of
#                   threshold by the DAG `experiment`; prints the tables of both
#   live.sh test MARKER PATH...   the tests of a marker and path, after installing what they need;
#                   where they cannot run it says why and succeeds
#   live.sh down    give back what runs have leased, then stop hosts and services
#
# Services and images have to be there for `run` (make live-images).
# Settings: TIDEBENCH_DATA_ROOT and those of common.sh
set -euo pipefail
source "$(dirname "$0")/common.sh"

cd "$repository"
python=${TIDEBENCH_LIVE_PYTHON:-$repository/.venv/bin/python}
root=${TIDEBENCH_DATA_ROOT:-$repository/var}
spec=include/experiment/specs/live.yaml

run() {
    need_root
    "$python" -m include.cli reap --testbed docker --remove # what a run before has left
    "$python" -m include.cli run "$spec" --root "$root" --fresh
    "$python" -m include.cli report "$root/live"
    rm -rf "$root/live_dag" # what was measured in real time is never measured again unasked
    "$python" .ci/demo.py experiment=live_dag topology=manufacturing_live testbed=docker \
        flavor=live-half-cpu-1gb controller=threshold btu_min=1 duration_min=6 \
        controller_options='{"reading": "paper", "interval_s": 15, "scale_up_above_items": 10, "scale_up_twice_above_items": 50, "scale_down_below_items": 1}' \
        pattern=stepwise pattern_options='{"levels": [0.5, 1.5, 2.5, 1.5], "hold_s": 60}' \
        price_books='["per_minute"]'
}
tests() { # MARKER PATH...
    [ -z "${TIDEBENCH_NO_LIVE_TESTS:-}" ] || { echo "live tests skipped: TIDEBENCH_NO_LIVE_TESTS is set"; return 0; }
    [ "$(id -u)" = 0 ] || { echo "live tests skipped: they need root"; return 0; }
    command -v dpkg-query >/dev/null || { echo "live tests skipped: they need Debian's packages"; return 0; }
    "$here/services.sh" packages || { echo "live tests skipped: their packages cannot be installed"; return 0; }
    [[ $1 != *openstack* && $1 != guests ]] || infra/openstack/openstack.sh install ||
        { echo "tests of the cloud skipped: its control plane cannot be installed"; return 0; }
    able || { echo "live tests skipped: no network namespace or no cgroup v1 can be made here"; return 0; }
    # They meet deadlines of the wall's clock on a machine that may be crowded: twice is a failure.
    local ended=0
    "$python" -m pytest -q -m "$@" || ended=$?
    [ $ended = 1 ] || return $ended # else not all of them ran
    echo "once more, those that failed:"
    "$python" -m pytest -q -m "$@" --last-failed
}
able() { # whether this machine lets us make what a host is made of
    local probe=$prefix-probe made=0
    ip netns add "$probe" 2>/dev/null && ip netns del "$probe" || made=1
    mkdir "/sys/fs/cgroup/memory/$probe" 2>/dev/null && rmdir "/sys/fs/cgroup/memory/$probe" || made=1
    return $made
}
down() {
    need_root
    local failed=0
    if [ -x "$python" ] && [ -d "$live_state" ]; then
        local up=0
        "$here/services.sh" status | grep '^rabbit up' >/dev/null && up=1 # not -q, which ends before status does
        # What runs hold in services that are down is found when they are up.
        if [ $up = 0 ] && [ -n "$(ls "$live_state"/{runs,leases} 2>/dev/null | grep -v ':$')" ]; then
            "$here/services.sh" up && up=1 || failed=1
        fi
        [ $up = 0 ] || "$python" -m include.cli reap --testbed docker --remove --after-s 0 || failed=1
    fi
    "$here/hosts.sh" down || failed=1
    "$here/services.sh" down
    [ $failed = 1 ] || rm -rf "$live_state/leases" # of hosts that are gone now
    return $failed
}

case ${1:-} in
    run) run ;;
    test) shift; tests "$@" ;;
    down) down ;;
    *) sed -n '2,/^[^#]/{/^#/p}' "$0"; exit 2 ;;
esac
