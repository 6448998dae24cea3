#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command with a docker engine of its own: scripts/with-docker.sh COMMAND ...
# The engine keeps everything in a temporary directory, has no network, and ends with the command. Its one image,
# debian:bookworm-slim with Python and a compiler, is made from Debian's packages by debootstrap, once; nothing is pulled.
# Where no engine can be had, it says why and runs the command all the same: the tests that need one are then skipped.
# Where there is one, REWARD_KIT_PROMISED=docker tells the tests that skipping these is a failure.
set -euo pipefail

image=debian:bookworm-slim
cache=${XDG_CACHE_HOME:-$HOME/.cache}/reward-kit-tests
root=$cache/bookworm-compilers.tar

without() {
    echo "with-docker: $1; tests of containers will be skipped" >&2
    shift
    exec "$@"
}

install() {
    command -v apt-get >/dev/null || return 1
    { apt-get install --yes --no-install-recommends "$@" ||
        { apt-get update && apt-get install --yes --no-install-recommends "$@"; }; } >&2
}

make_root() {
    local place
    place=$(mktemp -d "$cache/root.XXXXXX")
    debootstrap --variant=minbase --include=procps,python3,g++ bookworm "$place" >"$cache/debootstrap.log" 2>&1 &&
        rm -rf "$place"/var/cache/apt/* "$place"/var/lib/apt/lists/* "$place"/usr/share/{doc,info,locale,man} &&
        tar --create --one-file-system --directory "$place" --file "$root.new" . &&
        mv "$root.new" "$root"
    local made=$?
    rm -rf "$place"
    return $made
}

[[ $(uname -s) == Linux && $(id -u) -eq 0 ]] || without "an engine of our own needs Linux and root" "$@"
export DEBIAN_FRONTEND=noninteractive
command -v dockerd >/dev/null || install docker.io || without "docker.io cannot be installed" "$@"
mkdir -p "$cache"
if [[ ! -s $root ]]; then
    command -v debootstrap >/dev/null || install debootstrap || without "debootstrap cannot be installed" "$@"
    echo "with-docker: making the image (some minutes, once)" >&2
    make_root || without "debootstrap failed, see $cache/debootstrap.log" "$@"
fi

place=$(mktemp -d /var/tmp/reward-kit-docker.XXXXXX)
export DOCKER_HOST=unix://$place/docker.sock
# On overlay2, said by name: where that cannot be, docker would fall back on copying whole images (ten times slower).
dockerd --host "$DOCKER_HOST" --data-root "$place/data" --exec-root "$place/exec" --pidfile "$place/pid" \
    --storage-driver overlay2 --bridge none --iptables=false --ip6tables=false >"$place/log" 2>&1 &
engine=$!
finish() {
    kill "$engine" 2>/dev/null || true
    wait "$engine" 2>/dev/null || true
    grep -F "$place/" /proc/self/mounts | cut -d ' ' -f 2 | sort --reverse | xargs --no-run-if-empty umount --lazy || true
    rm -rf "$place"
}
trap finish EXIT
for _ in $(seq 120); do
    [[ -S $place/docker.sock ]] && docker version >/dev/null 2>&1 && break
    if ! kill -0 "$engine" 2>/dev/null; then
        reason=$(tail -n 1 "$place/log")
        finish
        trap - EXIT
        without "dockerd does not start: $reason" "$@"
    fi
    sleep 0.5
done
docker import - "$image" <"$root" >/dev/null
REWARD_KIT_PROMISED=docker "$@"
