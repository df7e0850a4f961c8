#!/bin/sh
# Makes each secret of docker-compose.yml that is not there yet: sh docker/make-secrets.sh [FOLDER]
# Each is a file, which Docker mounts into those containers alone that are to have it. They can be
# read by anybody there, since each image has a user of its own; the folder is for you alone.
set -eu
folder=${1:-secrets}
mkdir -p "$folder"
chmod 700 "$folder"

random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }

make() {
  if [ ! -s "$folder/$1" ]; then
    printf '%s\n' "$2" >"$folder/$1"
    chmod 444 "$folder/$1"
    echo "$folder/$1"
  fi
}

database=@postgres:5432/countersign
make postgres_password "$(random)"
make owner_url "postgresql://countersign:$(random)$database"
make app_url "postgresql://countersign_app:$(random)$database"
make seal_url "postgresql://countersign_seal:$(random)$database"
make maintenance_url "postgresql://countersign_maintenance:$(random)$database"
make valkey_password "$(random)"
make broker_url "redis://:$(cat "$folder/valkey_password")@valkey:6379/0"
make secret_key "$(random)$(random)"
make metrics_token "$(random)"
