#!/usr/bin/env bash
# Create .venv with everything pinned, and Airflow's database; with `demo` only what that needs.
# Says what is missing before it changes anything; repeating it costs nothing while the requirements
# stay as they are.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()

python=""
for candidate in "${PYTHON:-}" python3.11 python3; do
    [ -n "$candidate" ] || continue
    if "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
        python="$candidate"
        break
    fi
done
if [ -z "$python" ]; then
    missing+=("Python 3.11 (Debian 12: apt-get install python3 python3-venv), or PYTHON=/path/to/python3.11")
elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    missing+=("the venv module of Python (Debian: apt-get install python3-venv)")
fi

java="${JAVA_HOME:+$JAVA_HOME/bin/}java"
java_major="$("$java" -version 2>&1 | sed -nE '/ version "/{s/.* version "([0-9]+).*/\1/p;q}' || true)"
if [ "${java_major:-0}" -lt 17 ]; then
    missing+=("Java 17 or later for Spark, found ${java_major:-none} (Debian: apt-get install openjdk-17-jre-headless)")
fi

if [ "${#missing[@]}" -gt 0 ]; then
    echo "Tidebench cannot be set up here yet. Missing:" >&2
    printf '  - %s\n' "${missing[@]}" >&2
    echo "Install what is named, then repeat the command." >&2
    exit 1
fi

mkdir -p var
exec 9>var/.setup.lock # two at once would fill one .venv and make one database
flock -n 9 || { echo "Another make sets up here; waiting for it ..."; flock 9; }

stamp=".venv/installed-from.txt"
requirements=(requirements.txt)
[ "${1:-}" = demo ] || requirements+=(requirements-dev.txt)
is_from() { [ -x .venv/bin/python ] && cat "$@" pyproject.toml | cmp -s - "$stamp"; }
if ! is_from "${requirements[@]}" && ! is_from requirements.txt requirements-dev.txt; then
    echo "Setting up .venv (the first time some minutes) ..."
    [ -x .venv/bin/python ] || "$python" -m venv --without-pip .venv
    # Any pip will do to fetch uv; to put one into .venv takes five seconds.
    pip=("$python" -m pip --python .venv/bin/python --quiet --disable-pip-version-check)
    if ! "${pip[@]}" --version >/dev/null 2>&1; then
        .venv/bin/python -m ensurepip >/dev/null
        pip=(.venv/bin/python -m pip --quiet --disable-pip-version-check)
    fi
    "${pip[@]}" install "$(grep '^uv==' requirements-dev.txt)"
    install() { # uv takes a quarter of pip's time; pip is for a machine that has only pip configured
        .venv/bin/uv pip install --quiet --python .venv/bin/python "$@" || "${pip[@]}" install "$@"
    }
    # Nothing is left to resolve. A demo imports a part; what it imports is compiled then.
    [ "${1:-}" = demo ] || export UV_COMPILE_BYTECODE=1
    install --no-deps "${requirements[@]/#/-r}"
    # The command `tidebench`, and include.testing for controllers that live elsewhere.
    install --no-deps --no-build-isolation --editable .
    cat "${requirements[@]}" pyproject.toml >"$stamp"
fi

source .ci/env.sh
migrated="$AIRFLOW_HOME/migrated-for.txt"
migration=
if ! [ -f "$migrated" ] && { [ -n "${AIRFLOW__DATABASE__SQL_ALCHEMY_CONN:-}" ] ||
    { [ "$AIRFLOW_HOME" != "$PWD/var/airflow" ] && [ -f "$AIRFLOW_HOME/airflow.cfg" ]; }; }; then
    echo "AIRFLOW_HOME or AIRFLOW__DATABASE__SQL_ALCHEMY_CONN names an Airflow that this has not set up, and its" \
        "database would be migrated. Unset them, or agree: mkdir -p $AIRFLOW_HOME && touch $migrated" >&2
    exit 1
fi
if ! [ -f "$AIRFLOW_HOME/airflow.db" ] || ! cmp -s requirements.txt "$migrated"; then
    echo "Setting up Airflow's database in $AIRFLOW_HOME ..."
    mkdir -p "$AIRFLOW_HOME"
    airflow db migrate >"$AIRFLOW_HOME/migrate.log" 2>&1 &
    migration=$!
fi

if [ "${1:-}" = demo ] && [ -n "$migration" ]; then # else the DAG does it, with one core idle
    echo "Compiling the simulator (once) ..."
    scratch="$(mktemp -d)"
    trap 'rm -r "$scratch"' EXIT
    python -m include.cli run include/experiment/specs/demo.yaml --root "$scratch" >/dev/null
elif [ "${1:-}" != demo ] && ! [ var/spark-classes.jsa -nt "$stamp" ]; then
    echo "Archiving the classes of Spark, which halves its start (half a minute, once) ..."
    python -m include.results.tables.archive
fi

if [ -n "$migration" ]; then
    wait "$migration" || { tail -n 20 "$AIRFLOW_HOME/migrate.log" >&2; exit 1; }
    cp requirements.txt "$migrated"
fi
