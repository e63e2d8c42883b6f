#!/usr/bin/env bash
# Runs the fuzz targets, each for some seconds, on what tests/fuzz/corpus/ holds and what earlier
# runs found (build-fuzz/corpus/). The canary has a planted mistake and must be found.
# Usage: scripts/fuzz.sh [SECONDS] [TARGET...]      default: 10 seconds, all targets
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds="${1:-10}"
shift || true
targets=("$@")
[[ ${#targets[@]} -gt 0 ]] || targets=(commit_log checkpoint deletion_vector parquet_footer data_path sql canary)
passed=0 failed=0

run() { # target, further folders with inputs
  local target="$1" found="build-fuzz/corpus/$1"
  shift
  mkdir -p "$found" build-fuzz/crashes
  build-fuzz/fuzz/"fuzz_$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=8192 \
    -print_final_stats=1 -artifact_prefix="build-fuzz/crashes/$target-" "$found" "$@" \
    >"build-fuzz/$target.log" 2>&1
}

for target in "${targets[@]}"; do
  log="build-fuzz/$target.log"
  if [[ "$target" == canary ]]; then
    # Only a report of the planted read past the end counts, not any other failure.
    if ! run canary && grep -q 'heap-buffer-overflow' "$log"; then
      echo "canary: found, as it must be"
      passed=$((passed + 1))
    else
      echo "canary: NOT FOUND: the fuzzer or the address sanitizer does not work; see $log"
      failed=$((failed + 1))
    fi
  elif run "$target" "tests/fuzz/corpus/$target"; then
    echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs"
    passed=$((passed + 1))
  else
    echo "$target: FAILED; the input is in build-fuzz/crashes/"
    tail -n 40 "$log"
    failed=$((failed + 1))
  fi
done
echo "fuzz: $passed passed, $failed failed"
[[ $failed -eq 0 ]]
