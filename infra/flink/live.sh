#!/usr/bin/env bash
# live.sh - a short experiment on a real Flink, and the test of the gate.
#
#   live.sh run     measure include/experiment/specs/flink_small.yaml: two controllers, their tables.
#                   Flink has to be installed (make flink)
#   live.sh test    install it, and run the test in which a job is rescaled, a host killed and another
#                   released, and every item is counted; where it cannot be installed it says why and succeeds
#
# Settings: TIDEBENCH_DATA_ROOT, TIDEBENCH_FLINK_STATE
set -euo pipefail
cd "$(dirname "$0")/../.."
root=${TIDEBENCH_DATA_ROOT:-$PWD/var}

run() {
    python -m include.cli reap --testbed flink --remove # what a run before has left
    python -m include.cli run include/experiment/specs/flink_small.yaml --root "$root" --fresh
    python -m include.cli report "$root/flink_small"
}
tests() {
    [ -z "${TIDEBENCH_NO_LIVE_TESTS:-}" ] || { echo "test on Flink skipped: TIDEBENCH_NO_LIVE_TESTS is set"; return; }
    local javac
    javac=$(javac -version 2>&1 | sed -nE 's/^javac ([0-9]+).*/\1/p' || true)
    [ "${javac:-0}" -ge 17 ] || { echo "test on Flink skipped: it needs javac 17, found ${javac:-none}"; return; }
    if ! python -m infra.flink.install; then
        # With its jars there is nothing to download, so its job does not compile.
        ! ls -d "${TIDEBENCH_FLINK_STATE:-var/.flink}"/*/lib >/dev/null 2>&1 || return 1
        echo "test on Flink skipped: it cannot be downloaded"
        return
    fi
    local one=(python -m pytest -q tests/flink/test_run.py -k test_rescales_a_kill_and_a_release)
    # It meets deadlines of the wall's clock on a machine that may be crowded: twice is a failure.
    local ended=0
    "${one[@]}" || ended=$?
    [ $ended = 1 ] || return $ended
    echo "once more:"
    "${one[@]}"
}

case ${1:-} in
    run) run ;;
    test) tests ;;
    *) sed -n '2,/^[^#]/{/^#/p}' "$0"; exit 2 ;;
esac
