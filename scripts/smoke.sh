#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a wheel (the argument) as a user would, in a fresh environment away from the checkout, and starts it.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
wheel=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

"$root/.venv/bin/python" -m venv env
env/bin/python -m pip install --quiet --disable-pip-version-check "$wheel"
env/bin/reward-kit --version
env/bin/python -m reward_kit run --help >/dev/null
echo "smoke: $(basename "$wheel") installs and starts"
