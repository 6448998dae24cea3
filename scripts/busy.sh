#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command several times while loops keep the processors busy: scripts/busy.sh ROUNDS COMMAND ...
# There are two loops per processor. It stops at the first round that fails.
set -euo pipefail

rounds=$1
shift
trap 'kill $(jobs -p) 2>/dev/null' EXIT
for _ in $(seq $((2 * $(getconf _NPROCESSORS_ONLN)))); do
    (while :; do :; done) &
done
for round in $(seq "$rounds"); do
    echo "busy: round $round of $rounds, from $(date +%H:%M)"
    "$@"
done
