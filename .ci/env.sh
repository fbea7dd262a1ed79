# Everything Airflow, Spark and the tests need to know; the Makefile and you source it:
#   source .ci/env.sh && airflow dags test experiment
# Values that are already set stay as they are, so a machine with its own Airflow keeps it.

tidebench_root="$(cd "$(dirname "${BASH_SOURCE[0]:-$0}")/.." && pwd)"

export TIDEBENCH_DATA_ROOT="${TIDEBENCH_DATA_ROOT:-$tidebench_root/var}"
export AIRFLOW_HOME="${AIRFLOW_HOME:-$tidebench_root/var/airflow}"
export AIRFLOW__CORE__DAGS_FOLDER="${AIRFLOW__CORE__DAGS_FOLDER:-$tidebench_root/dags}"
export AIRFLOW__CORE__PLUGINS_FOLDER="${AIRFLOW__CORE__PLUGINS_FOLDER:-$tidebench_root/plugins}"
export AIRFLOW__CORE__LOAD_EXAMPLES="${AIRFLOW__CORE__LOAD_EXAMPLES:-False}"
export PYTHONPATH="$tidebench_root:$tidebench_root/plugins${PYTHONPATH:+:$PYTHONPATH}"
export PATH="$tidebench_root/.venv/bin:$PATH"

unset tidebench_root

# Compiled once, not by every one of the processes that a command or a test starts.
unset PYTHONDONTWRITEBYTECODE
