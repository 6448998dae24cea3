#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of what rests on the inside of aiohttp, pydantic and orjson with the lowest and the newest releases that
# pyproject.toml admits. Each has an environment in .venv-versions/ that holds only these packages, and what they depend
# on, before those of .venv: it takes seconds to make. Further arguments go to pytest.
# Budget on two cores: 4 minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

packages="aiohttp orjson pydantic"
tests="tests/generation tests/storage tests/test_models.py tests/utils/test_trusted.py"

# The requirements of pyproject.toml for these packages, one per line.
admitted() {
    .venv/bin/python - $packages <<'END'
import re, sys, tomllib
with open("pyproject.toml", "rb") as file:
    for line in tomllib.load(file)["project"]["dependencies"]:
        if re.match(r"[\w-]+", line)[0] in sys.argv[1:]:
            print(line)
END
}

versions() {
    "$1" -c 'import sys
from importlib.metadata import version
print(" ".join(f"{name} {version(name)}" for name in sys.argv[1:]))' $packages
}

# make_environment NAME RESOLUTION
make_environment() {
    local place=.venv-versions/$1 site
    [ -x "$place/bin/python" ] || .venv/bin/python -m venv --without-pip --clear "$place"
    admitted | .venv/bin/uv pip install --quiet --only-binary :all: --upgrade --resolution "$2" \
        --python "$place/bin/python" --requirement -
    site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    echo "import site; site.addsitedir('$site')" >"$("$place/bin/python" -c \
        'import sysconfig; print(sysconfig.get_path("purelib"))')/packages-of-venv.pth"
}

for name in lowest newest; do
    resolution=highest
    [ $name = newest ] || resolution=lowest-direct
    make_environment $name $resolution
    found=$(versions .venv-versions/$name/bin/python)
    if [ "$found" = "$(versions .venv/bin/python)" ]; then
        echo "test-versions: the $name are those of .venv, which \`make unit\` tests: $found"
        continue
    fi
    echo "test-versions: the $name: $found"
    # shellcheck disable=SC2086
    .venv-versions/$name/bin/python -m pytest -n "${WORKERS:-2}" --dist loadgroup -m "not slow and not local_model" \
        -p no:cacheprovider $tests "$@"
done
