#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes .venv-litellm: litellm, with which our requests and prices are compared, pinned and hashed, and this package.
set -euo pipefail
cd "$(dirname "$0")/.."

[ -x .venv-litellm/bin/python ] || .venv/bin/python -m venv --clear .venv-litellm

install() {
    .venv-litellm/bin/python -m pip install --quiet --disable-pip-version-check "$@"
}

echo "setup-litellm: installing pinned packages (a minute the first time)"
install --require-hashes --requirement requirements/build.txt
install --require-hashes --no-deps --no-build-isolation --requirement requirements/litellm.txt
install --no-deps --no-build-isolation --no-index --editable .
echo "setup-litellm: done"
