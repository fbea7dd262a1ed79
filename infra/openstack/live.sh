#!/usr/bin/env bash
# live.sh - an experiment on servers of the local control plane, and the end of everything in it.
#
#   live.sh run     the DAG `experiment` with testbed=openstack; prints its tables
#   live.sh down    give back what runs hold, then end control plane and machines
#
# The control plane, services and images have to be there for `run` (make openstack-up).
# Settings: TIDEBENCH_DATA_ROOT and those of openstack.sh
set -euo pipefail
source "$(dirname "$(readlink -f "$0")")/../live/common.sh"

cd "$repository"
openstack=$repository/infra/openstack/openstack.sh
python=${TIDEBENCH_LIVE_PYTHON:-$repository/.venv/bin/python}
root=${TIDEBENCH_DATA_ROOT:-$repository/var}

run() {
    need_root
    export $("$openstack" env)
    "$python" -m include.cli reap --testbed openstack --remove # what a run before has left
    rm -rf "$root/live_openstack" # what was measured in real time is never measured again unasked
    "$python" .ci/demo.py experiment=live_openstack topology=manufacturing_live testbed=openstack \
        flavor=live-half-cpu-1gb controller=threshold btu_min=1 duration_min=6 \
        controller_options='{"interval_s": 15, "scale_up_above_items": 10, "scale_up_twice_above_items": 50}' \
        pattern=stepwise pattern_options='{"levels": [0.5, 1.5, 2.5, 1.5], "hold_s": 60}' \
        price_books='["per_minute"]'
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
    down) down ;;
    *) sed -n '2,/^[^#]/{/^#/p}' "$0"; exit 2 ;;
esac
