#!/bin/sh
# local-service NAME COMMAND...: what the official images of PostgreSQL, Redis, RabbitMQ and the
# registry do at their start, as far as docker-compose.yaml relies on it, for Debian's packages.
set -eu
name=$1
shift
case $name in
postgres)
    PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
    export PATH PGDATA="${PGDATA:-/var/lib/postgresql/data/pgdata}"
    if [ ! -s "$PGDATA/PG_VERSION" ]; then
        # Beside its place until everything is there: one that is stopped half made would stay so.
        place=$PGDATA PGDATA=$PGDATA.new
        rm -rf "$PGDATA"
        initdb --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" --encoding=UTF8 \
            --auth-local=trust --auth-host=scram-sha-256 >/dev/null
        echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
        # Only by the socket, so nobody sees it half made.
        pg_ctl -s -w -o "-c listen_addresses=''" start
        createdb -U "$POSTGRES_USER" "$POSTGRES_DB"
        for one in /docker-entrypoint-initdb.d/*.sh; do
            [ ! -e "$one" ] || POSTGRES_USER=$POSTGRES_USER sh "$one"
        done
        pg_ctl -s -w stop
        mv "$PGDATA" "$place"
        PGDATA=$place
    fi
    exec postgres -c listen_addresses='*' "$@"
    ;;
redis)
    cd /data
    exec "$@"
    ;;
rabbitmq)
    export PATH=/usr/lib/rabbitmq/bin:$PATH HOME=/var/lib/rabbitmq
    export RABBITMQ_MNESIA_BASE=/var/lib/rabbitmq/mnesia RABBITMQ_LOG_BASE=/var/lib/rabbitmq/log RABBITMQ_LOGS=-
    exec rabbitmq-server
    ;;
registry)
    cat >/tmp/registry.yml <<YAML
version: 0.1
log: {level: warn, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: ${REGISTRY_STORAGE_FILESYSTEM_ROOTDIRECTORY:-/var/lib/registry}}, delete: {enabled: true}}
http: {addr: ":5000"}
YAML
    exec docker-registry serve /tmp/registry.yml
    ;;
*) echo "no such service: $name" >&2; exit 2 ;;
esac
