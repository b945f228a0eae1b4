#!/usr/bin/env bash
# Creates the image of a Debian machine with systemd and Docker.
#
#   build-debian-root.sh SUITE IMAGE     SUITE: bookworm (Debian 12) or trixie (Debian 13)
#
# Requires root, debootstrap, a Debian mirror and Docker. The root is created once and cached as a tar.
#   MIRROR   Debian mirror (default: the one of this machine's apt)
set -euo pipefail

suite=$1
image=$2
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/fairlead/systemd-roots
packages=systemd,systemd-sysv,dbus,ca-certificates,curl,docker.io,iptables,iproute2
# Debian 13 has the client in a separate package.
[ "$suite" = bookworm ] || packages=$packages,docker-cli

# A hash of the inputs.
fingerprint=$(sha256sum <"$0" | cut -c 1-16)
tar=$cache/$suite-$fingerprint.tar

find_mirror() {
  local codename
  codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  # shellcheck disable=SC2016 # an apt format string
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' "Release: $codename" | head -n 1
}

make_root() {
  local root=$1 mirror
  mirror=${MIRROR:-$(find_mirror)}
  debootstrap --variant=minbase --include="$packages" "$suite" "$root" "${mirror:-http://deb.debian.org/debian}"
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
  # systemd generates a new machine ID at first boot.
  : >"$root/etc/machine-id"
  # There is no console, so a login on it would fail repeatedly.
  ln -sf /dev/null "$root/etc/systemd/system/console-getty.service"
  ln -sf /dev/null "$root/etc/systemd/system/getty.target"
  # The kernel is the host's: units must not change its clock, devices or parameters.
  for unit in systemd-udevd.service systemd-timesyncd.service systemd-sysctl.service apt-daily.timer apt-daily-upgrade.timer; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit"
  done
}

if [ "$(docker image inspect -f '{{index .Config.Labels "dev.fairlead.fingerprint"}}' "$image" 2>/dev/null)" = "$fingerprint" ]; then
  echo "$image is up to date"
  exit 0
fi

if [ ! -e "$tar" ]; then
  mkdir -p "$cache"
  work=$(mktemp -d "$cache/$suite.half-XXXXXX")
  trap '[ $? = 0 ] || tail -n 20 "$work/log" >&2; rm -rf "$work"' EXIT
  # Not in a condition, where `set -e` has no effect.
  make_root "$work/root" >"$work/log" 2>&1
  tar -C "$work/root" --numeric-owner -cf "$work/tar" .
  # Remove roots of earlier versions of this script.
  rm -f "$cache/$suite"-*.tar
  mv "$work/tar" "$tar"
fi
docker import --change "LABEL dev.fairlead.fingerprint=$fingerprint" "$tar" "$image" >/dev/null
echo "built $image"
