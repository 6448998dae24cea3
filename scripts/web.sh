#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the viewer's page from web/ into reward_kit/viewer/static/: packages as the lock file has them, the types
# checked, the bundle written. Needs node and npm, and installs them where it may.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/system-packages.sh node
if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    echo "web: the page is built by node 18 or newer with npm. Install them and run this again." >&2
    exit 1
fi

cd web
# npm writes this file when it has installed everything.
if [[ package-lock.json -nt node_modules/.package-lock.json ]]; then
    npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
fi
npm run --silent check
npm run --silent build
