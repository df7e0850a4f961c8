#!/bin/sh
# Run once by the postgres image on an empty volume: the roles of docs/en/guides/install.md.
set -eu
psql --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
  --set owner_password="$OWNER_PASSWORD" --set app_password="$APP_PASSWORD" \
  --set seal_password="$SEAL_PASSWORD" --set maintenance_password="$MAINTENANCE_PASSWORD" <<'SQL'
CREATE ROLE countersign LOGIN PASSWORD :'owner_password';
CREATE ROLE countersign_app LOGIN PASSWORD :'app_password';
ALTER ROLE countersign_app SET idle_in_transaction_session_timeout = '10s';
ALTER ROLE countersign_app SET transaction_timeout = '50s';
CREATE ROLE countersign_seal LOGIN PASSWORD :'seal_password';
CREATE ROLE countersign_maintenance LOGIN PASSWORD :'maintenance_password';
CREATE DATABASE countersign OWNER countersign;
SQL
