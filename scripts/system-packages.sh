#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs system packages, where they are missing. Each argument is one of:
#   bubblewrap  what sandboxes need (without an argument, this one)
#   node        node and npm, which build the viewer's page
#   chromium    the browser in which the viewer's page is tested
# Without root, or without a package manager it knows, it says what to install and fails no build: what needs them is
# skipped, with its reason.
set -euo pipefail

present() {
    case $1 in
        bubblewrap) command -v bwrap ;;
        node) command -v node && command -v npm ;;
        chromium) command -v chromium || command -v chromium-browser || command -v google-chrome ;;
        *) echo "system-packages: $1 is not one of bubblewrap, node, chromium" >&2 && exit 2 ;;
    esac >/dev/null
}

wanted=()
for name in "${@:-bubblewrap}"; do
    present "$name" || wanted+=("$name")
done
if [[ ${#wanted[@]} -eq 0 ]]; then
    exit 0
fi
if [[ $(uname -s) != Linux ]]; then
    if [[ ${wanted[*]} == bubblewrap ]]; then
        echo "system-packages: namespaces are a feature of Linux; sandboxes here need docker or podman" >&2
    else
        echo "system-packages: install by hand, please: ${wanted[*]}" >&2
    fi
    exit 0
fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
    as_root=(sudo -n)
    if ! sudo -n true 2>/dev/null; then
        echo "system-packages: not root; install by hand, please: ${wanted[*]}" >&2
        exit 0
    fi
fi

install() {
    local packages=("${wanted[@]/#node/nodejs npm}")
    read -ra packages <<<"${packages[*]}"
    if command -v apt-get >/dev/null; then
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "${packages[@]}" ||
            { "${as_root[@]}" apt-get update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
                apt-get install --yes --no-install-recommends "${packages[@]}"; }
    elif command -v dnf >/dev/null; then
        "${as_root[@]}" dnf install --assumeyes "${packages[@]}"
    elif command -v apk >/dev/null; then
        "${as_root[@]}" apk add "${packages[@]}" bash
    elif command -v pacman >/dev/null; then
        "${as_root[@]}" pacman --sync --noconfirm "${packages[@]}"
    else
        return 1
    fi
}

echo "system-packages: installing ${wanted[*]}"
install >&2 || echo "system-packages: could not install ${wanted[*]}; install by hand what you need of them" >&2
