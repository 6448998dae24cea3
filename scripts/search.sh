#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Try random examples of the tests of properties, round after round, until SECONDS are over. Usage:
#   scripts/search.sh SECONDS [ARGUMENTS FOR PYTEST...]
# It ends with 1 at the first example that fails. Write it above its test, as `@example(...)`, and mend what it shows:
# then every `make test` tries it.
set -euo pipefail
cd "$(dirname "$0")/.."
budget=$1
shift
workers=${WORKERS:-2}
round=0
while ((SECONDS < budget)); do
    round=$((round + 1))
    seed=$((RANDOM * 32768 + RANDOM))
    status=0
    timeout --foreground $((budget - SECONDS)) .venv/bin/pytest -q -x -n "$workers" --dist loadgroup -m hypothesis \
        --hypothesis-profile search --hypothesis-seed "$seed" "$@" || status=$?
    case $status in
        0) ;;
        124) break ;; # the time is over, in the middle of a round
        *)
            echo "search: a property does not hold (round $round, --hypothesis-seed $seed)."
            echo "Write the falsifying example above its test as @example(...), and mend what it shows."
            exit 1
            ;;
    esac
done
echo "search: nothing was found in $budget seconds ($round rounds)."
