#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes .venv-frameworks: the packages that our adapters speak to, pinned and hashed, and this package.
set -euo pipefail
cd "$(dirname "$0")/.."

[ -x .venv-frameworks/bin/python ] || .venv/bin/python -m venv --clear .venv-frameworks

install() {
    .venv-frameworks/bin/python -m pip install --quiet --disable-pip-version-check "$@"
}

echo "setup-frameworks: installing pinned packages (a few minutes the first time)"
install --require-hashes --requirement requirements/build.txt
install --require-hashes --no-deps --no-build-isolation --requirement requirements/frameworks.txt
install --require-hashes --no-deps --no-build-isolation --requirement requirements/environments.txt
install --no-deps --no-build-isolation --no-index --editable .
echo "setup-frameworks: done"
