#!/usr/bin/env bash
# live.sh - a short experiment on a real Flink: two controllers, their tables. Flink has to be installed (make flink).
#
# Settings: TIDEBENCH_DATA_ROOT, TIDEBENCH_FLINK_STATE
set -euo pipefail
cd "$(dirname "$0")/../.."
root=${TIDEBENCH_DATA_ROOT:-$PWD/var}

python -m include.cli reap --testbed flink --remove # what a run before has left
python -m include.cli run include/experiment/specs/flink_small.yaml --root "$root" --fresh
python -m include.cli report "$root/flink_small"
