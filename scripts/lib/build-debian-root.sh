#!/usr/bin/env bash
# Makes the image of a Debian machine that systemd runs, with Docker installed.
#
#   build-debian-root.sh SUITE IMAGE     SUITE: bookworm (Debian 12) or trixie (Debian 13)
#
# Needs root, debootstrap, a Debian mirror and a Docker engine. The root is made once, and kept as a tar in the cache folder.
#   MIRROR   Debian mirror (default: the one that this machine's apt uses)
set -euo pipefail

suite=$1
image=$2
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/fairlead/systemd-roots
packages=systemd,systemd-sysv,dbus,ca-certificates,curl,docker.io,iptables,iproute2
# Debian 13 has the client in a package of its own.
[ "$suite" = bookworm ] || packages=$packages,docker-cli

# Changes with what a root is made of.
fingerprint=$(sha256sum <"$0" | cut -c 1-16)
tar=$cache/$suite-$fingerprint.tar

find_mirror() {
  local codename
  codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  # shellcheck disable=SC2016 # a format of apt's
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' "Release: $codename" | head -n 1
}

make_root() {
  local root=$1 mirror
  mirror=${MIRROR:-$(find_mirror)}
  debootstrap --variant=minbase --include="$packages" "$suite" "$root" "${mirror:-http://deb.debian.org/debian}"
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
  # A machine of its own: what systemd makes at the first boot of a new one.
  : >"$root/etc/machine-id"
  # Without a console, a login on one only fails again and again.
  ln -sf /dev/null "$root/etc/systemd/system/console-getty.service"
  ln -sf /dev/null "$root/etc/systemd/system/getty.target"
  # The kernel is the outer machine's: nothing here sets its clock, devices or parameters.
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
  # Nothing behind it in a condition: `set -e` would not hold inside.
  make_root "$work/root" >"$work/log" 2>&1
  tar -C "$work/root" --numeric-owner -cf "$work/tar" .
  # Roots of earlier versions of this script.
  rm -f "$cache/$suite"-*.tar
  mv "$work/tar" "$tar"
fi
docker import --change "LABEL dev.fairlead.fingerprint=$fingerprint" "$tar" "$image" >/dev/null
echo "built $image"
