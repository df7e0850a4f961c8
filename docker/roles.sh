#!/bin/sh
# Run once by the postgres image on an empty volume: the roles of docs/en/guides/install.md, with
# the passwords of their URLs.
set -eu
password() { sed 's#^[^:]*://[^:]*:\([^@]*\)@.*#\1#' "${SECRETS:-/run/secrets}/$1_url"; }
psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
  --set owner_password="$(password owner)" --set app_password="$(password app)" \
  --set seal_password="$(password seal)" \
  --set maintenance_password="$(password maintenance)" <<'SQL'
CREATE ROLE countersign LOGIN PASSWORD :'owner_password';
CREATE ROLE countersign_app LOGIN PASSWORD :'app_password';
ALTER ROLE countersign_app SET idle_in_transaction_session_timeout = '10s';
ALTER ROLE countersign_app SET transaction_timeout = '50s';
CREATE ROLE countersign_seal LOGIN PASSWORD :'seal_password';
CREATE ROLE countersign_maintenance LOGIN PASSWORD :'maintenance_password';
CREATE DATABASE countersign OWNER countersign;
SQL
