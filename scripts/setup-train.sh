#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes .venv-train: TRL with what it needs and the code of other trainers, pinned and hashed, torch pinned by version,
# and this package.
# The build of torch is the one that pip's configuration prefers: for CPUs where an index offers `+cpu` builds, else with
# CUDA. The interpreter is that of .venv.
set -euo pipefail
cd "$(dirname "$0")/.."

[ -x .venv-train/bin/python ] || .venv/bin/python -m venv --clear .venv-train

install() {
    .venv-train/bin/python -m pip install --quiet --disable-pip-version-check "$@"
}

echo "setup-train: installing torch and pinned packages (some minutes the first time)"
install --require-hashes --requirement requirements/build.txt
install torch==2.13.0
# The pins are complete but for torch, which `--no-deps` keeps from being looked for among them.
install --require-hashes --no-deps --no-build-isolation --requirement requirements/train.txt
install --require-hashes --no-deps --no-build-isolation --requirement requirements/trainers.txt
# verl and OpenRLHF bring top-level packages of these names along, which would hide ours.
rm -rf .venv-train/lib/python3*/site-packages/{tests,scripts}
install --require-hashes --no-deps --requirement requirements/model.txt
install --no-deps --no-build-isolation --no-index --editable .
echo "setup-train: done"
