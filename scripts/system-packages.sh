#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the system packages that sandboxes need, where they are missing: bubblewrap.
# Without root, or without a package manager it knows, it says what to install and fails no build: what needs them is
# skipped, with its reason.
set -euo pipefail

if command -v bwrap >/dev/null; then
    exit 0
fi
if [[ $(uname -s) != Linux ]]; then
    echo "system-packages: namespaces are a feature of Linux; sandboxes here need docker or podman" >&2
    exit 0
fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
    as_root=(sudo -n)
    if ! sudo -n true 2>/dev/null; then
        echo "system-packages: not root; to have sandboxes, install bubblewrap" >&2
        exit 0
    fi
fi

install_bubblewrap() {
    if command -v apt-get >/dev/null; then
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends bubblewrap ||
            { "${as_root[@]}" apt-get update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
                apt-get install --yes --no-install-recommends bubblewrap; }
    elif command -v dnf >/dev/null; then
        "${as_root[@]}" dnf install --assumeyes bubblewrap
    elif command -v apk >/dev/null; then
        "${as_root[@]}" apk add bubblewrap bash
    elif command -v pacman >/dev/null; then
        "${as_root[@]}" pacman --sync --noconfirm bubblewrap
    else
        return 1
    fi
}

echo "system-packages: installing bubblewrap"
install_bubblewrap >&2 || echo "system-packages: could not install bubblewrap; install it by hand to have sandboxes" >&2
