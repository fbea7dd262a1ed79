# Tidebench with everything pinned: Airflow's services, the Spark master and its workers all run
# from this one image. No secret is in it, and nothing of the machine that builds it.
#
# A base is pinned for good by its digest: BASE_IMAGE=python:3.11.13-slim-bookworm@sha256:...
# (`docker buildx imagetools inspect python:3.11.13-slim-bookworm` shows it).
ARG BASE_IMAGE=python:3.11.13-slim-bookworm
# An image with wheels at its root, for a build without a package index (then PIP_NO_INDEX=1).
ARG WHEELS_IMAGE=scratch

FROM ${WHEELS_IMAGE} AS wheels
FROM ${BASE_IMAGE}

# ps is what Spark's scripts look for processes with; tini reaps what a killed task leaves behind.
RUN if ! command -v java tini ps >/dev/null; then \
        apt-get update && \
        apt-get install -y --no-install-recommends openjdk-17-jre-headless procps tini && \
        rm -rf /var/lib/apt/lists/*; \
    fi

ARG PIP_NO_INDEX=
COPY requirements.txt /opt/tidebench/requirements.txt
# pip compiles one file after another, compileall on all cores.
RUN --mount=type=bind,from=wheels,target=/wheels \
    python3 -m pip install --no-cache-dir --no-compile --root-user-action=ignore \
        --disable-pip-version-check --find-links /wheels -r /opt/tidebench/requirements.txt && \
    { python3 -m compileall -q -j 0 "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" || true; }

RUN useradd --uid 10001 --user-group --home-dir /opt/airflow --shell /usr/sbin/nologin tidebench && \
    install -d -o tidebench -g tidebench /opt/airflow /opt/airflow/logs /opt/registry /opt/tidebench/var \
        /opt/tidebench/compiled

WORKDIR /opt/tidebench
COPY --chown=0:0 include include
COPY --chown=0:0 plugins plugins
COPY --chown=0:0 dags dags
COPY --chown=0:0 sql sql
COPY --chown=0:0 infra/compose/health.py infra/compose/health.py
# The command that messages name; what it calls is on PYTHONPATH.
RUN chmod -R go=rX include plugins dags sql infra && \
    printf '#!/bin/sh\nexec python3 -m include.cli "$@"\n' >/usr/local/bin/tidebench && \
    chmod 755 /usr/local/bin/tidebench && \
    python3 -m compileall -q -j 0 include plugins infra

ENV AIRFLOW_HOME=/opt/airflow \
    AIRFLOW__CORE__DAGS_FOLDER=/opt/tidebench/dags \
    AIRFLOW__CORE__PLUGINS_FOLDER=/opt/tidebench/plugins \
    AIRFLOW__CORE__LOAD_EXAMPLES=False \
    TIDEBENCH_DATA_ROOT=/opt/tidebench/var \
    PYTHONPATH=/opt/tidebench:/opt/tidebench/plugins \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    NUMBA_CACHE_DIR=/opt/tidebench/compiled \
    TIDEBENCH_SPARK_CLASSES=/opt/tidebench/compiled/spark-classes.jsa \
    HOME=/opt/airflow
USER 10001:10001
# The kernel and the classes of Spark, which else every new container compiles and parses anew.
RUN python3 -m include.results.tables.archive
ENTRYPOINT ["tini", "--"]
CMD ["airflow", "version"]
