#!/usr/bin/env bash
# The tutorial of the AUTO CDC documents, example by example: load the changes, run the pipeline, look;
# then a late and repeated batch arrives, and the pipeline runs again.
#   STRANDLINE=<program>  DEMO_DIR=<folder for the warehouses, emptied first>
set -euo pipefail
cd "$(dirname "$0")/../.."
strandline=${STRANDLINE:-build/bin/strandline}
demo_dir=${DEMO_DIR:-build/demo}
tutorial=examples/tutorial

changes="SELECT * FROM main.cdc_tutorial.users_cdf"
heading() { printf '\n=== %s\n' "$*"; }

# example TITLE PIPELINE DATA QUERY
example() {
  local title=$1 pipeline=$2 data=$3 query=$4
  local warehouse=$demo_dir/$(basename "$data" .sql)-$pipeline
  rm -rf "$warehouse"

  heading "$title"
  "$strandline" sql --warehouse "$warehouse" -f "$tutorial/data/$data"
  "$strandline" sql --warehouse "$warehouse" -c "$changes"
  "$strandline" run "$tutorial/$pipeline" --warehouse "$warehouse"
  "$strandline" sql --warehouse "$warehouse" -c "$query"

  printf '\nA late and repeated batch arrives:\n'
  "$strandline" sql --warehouse "$warehouse" -f "$tutorial/data/late_batch.sql"
  "$strandline" run "$tutorial/$pipeline" --warehouse "$warehouse"
  "$strandline" sql --warehouse "$warehouse" -c "$query"
}

current="SELECT * FROM users_current ORDER BY userId"
history="SELECT * FROM users_history ORDER BY userId, __START_AT"

example "SCD type 1: users_current" users_current create.sql "$current"
example "SCD type 1 with a TRUNCATE at sequence 3: users_current" \
  users_current create_with_truncate.sql "$current"
example "SCD type 2, all columns tracked: users_history" users_history create.sql "$history"
example "SCD type 2, all columns but city tracked: users_history" \
  users_history_except_city create.sql "$history"

printf '\nThe tables are Delta tables under %s/; run this again any time.\n' "$demo_dir"
