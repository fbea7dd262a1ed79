#!/usr/bin/env bash
# live.sh - an experiment on servers of the local control plane, and the end of everything in it.
#
#   live.sh run     the DAG `experiment` with testbed=openstack; prints its tables
#   live.sh guests  the DAG on two real guests, one of which loses its power in the second window
#   live.sh down    give back what runs hold, then end control plane and machines
#
# The control plane, services and images have to be there for `run` (make openstack-up).
# Settings: TIDEBENCH_DATA_ROOT and those of openstack.sh
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/../live/common.sh"

cd "$repository"
here=$repository/infra/openstack
openstack=$here/openstack.sh
python=${TIDEBENCH_LIVE_PYTHON:-$repository/.venv/bin/python}
root=${TIDEBENCH_DATA_ROOT:-$repository/var}

run() {
    need_root
    export $("$openstack" env)
    "$python" -m include.cli reap --testbed openstack --remove # what a run before has left
    rm -rf "$root/live_openstack" # what was measured in real time is never measured again unasked
    "$python" .ci/demo.py experiment=live_openstack topology=manufacturing_live testbed=openstack \
        flavor=live-half-cpu-1gb controller=threshold btu_min=1 duration_min=6 \
        controller_options='{"reading": "paper", "interval_s": 15, "scale_up_above_items": 10, "scale_up_twice_above_items": 50, "scale_down_below_items": 1}' \
        pattern=stepwise pattern_options='{"levels": [0.5, 1.5, 2.5, 1.5], "hold_s": 60}' \
        price_books='["per_minute"]'
}
guests() {
    need_root
    local cut hypervisor
    hypervisor=$("$openstack" hypervisor)
    [ "$hypervisor" != stand-in ] || die "servers are not guests here; make openstack-down, then make live-guests"
    export $("$openstack" env)
    "$python" -m include.cli reap --testbed openstack --remove --after-s 0
    rm -rf "$root/live_guests"
    echo "two guests of Debian under Nova's libvirt driver, $hypervisor; a second of the run takes two of the wall"
    power_cut & cut=$!
    trap "kill $cut 2>/dev/null || true" EXIT
    "$python" .ci/demo.py experiment=live_guests topology="$here/on_guests/relay.yaml" testbed=openstack \
        calibration="$here/on_guests/emulated.yaml" flavor=live-half-cpu-1gb controller=fixed \
        controller_options='{"interval_s": 5}' btu_min=1 duration_min=6 pattern=constant \
        pattern_options='{"level": 1}' price_books='["per_minute"]'
}
begun() { # whether a run in the cloud has come to its second 0
    local one
    for one in $(grep -ls '"openstack"' "$live_state"/runs/*/origin.json); do
        ! grep -qs '"started_us": [1-9]' "${one%/*}/state.json" || return 0
    done
    return 1
}
power_cut() { # SIGKILL to the QEMU of a guest, 30 s of the wall into the second window
    local victim
    until begun; do sleep 1; done
    sleep 150
    victim=$("$openstack" guests | awk '$1 == "process" {print $2}' | tail -n 1)
    kill -KILL "$victim" && echo "          (one guest has lost its power)"
}
down() {
    need_root
    local failed=0
    if [ -x "$python" ] && "$openstack" status >/dev/null; then
        export $("$openstack" env)
        "$python" -m include.cli reap --testbed openstack --remove --after-s 0 || failed=1
    fi
    "$openstack" down
    return $failed
}

case ${1:-} in
    run) run ;;
    guests) guests ;;
    down) down ;;
    *) sed -n '2,/^[^#]/{/^#/p}' "$0"; exit 2 ;;
esac
