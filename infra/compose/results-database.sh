#!/bin/sh
# Run once by PostgreSQL's image, when its data is made: the database of published tables, with a
# user of its own who sees nothing of Airflow's.
set -eu
psql -v ON_ERROR_STOP=1 -q -U "$POSTGRES_USER" -d postgres <<SQL
\set password \`cat /run/secrets/results_password\`
CREATE ROLE tidebench LOGIN PASSWORD :'password';
CREATE DATABASE tidebench OWNER tidebench;
REVOKE CONNECT ON DATABASE airflow FROM PUBLIC;
SQL
