#!/usr/bin/env bash
# Creates a minimal Debian 12 root for scripts/try-docs.
#
#   build-bare-root.sh          prints the path of a tar, which is created once and cached
#
# Requires root, debootstrap and a Debian mirror.
#   MIRROR   Debian mirror (default: http://deb.debian.org/debian)
set -euo pipefail

mirror=${MIRROR:-http://deb.debian.org/debian}
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/fairlead/bare-roots
# A hash of the inputs.
fingerprint=$(sha256sum <"$0" | cut -c 1-16)
tar=$cache/bookworm-$fingerprint.tar

if [ ! -e "$tar" ]; then
  mkdir -p "$cache"
  work=$(mktemp -d "$cache/half-XXXXXX")
  trap '[ $? = 0 ] || tail -n 20 "$work/log" >&2; rm -rf "$work"' EXIT
  debootstrap --variant=minbase bookworm "$work/root" "$mirror" >"$work/log" 2>&1
  rm -rf "$work/root"/var/cache/apt/archives/*.deb "$work/root"/var/lib/apt/lists/*
  tar -C "$work/root" --numeric-owner -cf "$work/tar" .
  # Remove roots of earlier versions of this script.
  rm -f "$cache"/bookworm-*.tar
  mv "$work/tar" "$tar"
fi
echo "$tar"
