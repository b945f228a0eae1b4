#!/usr/bin/env bash
# Builds the demo engine's image: Debian's llama.cpp server and the models of this package. No image registry is needed.
#
#   build-image.sh [IMAGE]        default fairlead/demo-engine:1; does nothing when that image is up to date
#
# Needs apt, a Docker engine that answers, and no root beyond that. Nothing on the machine itself is changed.
#   SUITE    Debian suite that has llama.cpp (default forky; Debian 12 and 13 have none; sid works too)
#   MIRROR   Debian mirror (default: the one that this machine's apt uses)
set -euo pipefail

image=${1:-fairlead/demo-engine:1}
package=$(cd "$(dirname "$0")/.." && pwd)
suite=${SUITE:-forky}
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/fairlead/demo-engine/$suite
# The server, its libraries, and forky's own C library: theirs is newer than the host's.
packages=(libc6 libgcc-s1 libstdc++6 libgomp1 libssl3t64 libzstd1 zlib1g libggml0 libllama0 llama.cpp-tools)

fail() {
  printf 'build-image: %s\n' "$@" >&2
  exit 1
}

require_tools() {
  local tool
  for tool in apt-get dpkg-deb docker tar sha256sum; do
    command -v "$tool" >/dev/null || fail "'$tool' is missing. Install it (Debian: apt-get install apt dpkg docker.io tar coreutils)."
  done
  docker info >/dev/null 2>&1 || fail "no Docker engine answers. Start it (systemctl start docker), or check that you may use its socket."
}

# Changes with whatever the image is made of, so that an up-to-date image is recognised.
fingerprint() {
  (cd "$package" && cat image/build-image.sh models/*.gguf && echo "$suite") | sha256sum | cut -d' ' -f1
}

find_mirror() {
  local codename
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' "Release: $codename" | head -n 1
}

# apt with lists and a cache of its own, and the machine's proxies, certificates and keys. A mirror may lag behind the few days
# that a testing suite's index is valid for; its signature is checked all the same.
write_apt_configuration() {
  local mirror=$1 options=''
  # Debian 13 trusts this file by name only; older roots trust the same keys by folder.
  [ ! -e /usr/share/keyrings/debian-archive-keyring.gpg ] || options='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]'
  mkdir -p "$cache/apt/lists/partial" "$cache/apt/archives/partial"
  echo "deb $options $mirror $suite main" >"$cache/apt/sources.list"
  cat >"$cache/apt/apt.conf" <<CONF
Dir::State::Lists "$cache/apt/lists";
Dir::State::status "/dev/null";
Dir::Cache "$cache/apt";
Dir::Etc::sourcelist "$cache/apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Acquire::Check-Valid-Until "false";
CONF
}

download_packages() {
  [ ! -e "$cache/complete" ] || return 0
  local mirror
  mirror=${MIRROR:-$(find_mirror)}
  [ -n "$mirror" ] || fail "apt names no Debian mirror on this machine. Say which: set MIRROR to its address"
  write_apt_configuration "$mirror"
  export APT_CONFIG=$cache/apt/apt.conf
  apt-get -qq update || fail "could not read '$suite' from $mirror." \
    "Check the network, and that the package debian-archive-keyring is installed and current. Then run this again."
  rm -rf "$cache/debs"
  mkdir -p "$cache/debs"
  (cd "$cache/debs" && apt-get -qq download "${packages[@]}") ||
    fail "could not download ${packages[*]} of '$suite' from $mirror. If Debian renamed one, try SUITE=sid."
  touch "$cache/complete"
}

lay_root() {
  local root=$1 folder package_file
  mkdir -p "$root"/usr/{bin,sbin,lib,lib64} "$root"/{etc,tmp,models}
  chmod 1777 "$root/tmp"
  for folder in bin sbin lib lib64; do ln -sfn "usr/$folder" "$root/$folder"; done
  for package_file in "$cache"/debs/*.deb; do dpkg-deb -x "$package_file" "$root"; done
  find "$root/usr/bin" -type f ! -name llama-server -delete
  rm -rf "$root"/usr/share/{man,bash-completion,lintian,locale,info,llama.cpp,gdb} "$root"/usr/libexec "$root"/var \
    "$root"/usr/lib/*-linux-gnu/{gconv,engines-3,ossl-modules} "$root"/usr/lib/systemd
  # The licences stay.
  find "$root/usr/share/doc" -type f ! -name copyright -delete
  echo 'engine:x:10001:10001::/tmp:/usr/sbin/nologin' >"$root/etc/passwd"
  echo 'engine:x:10001:' >"$root/etc/group"
  echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
  install -m 644 "$package"/models/*.gguf "$root/models/"
}

# Prints the new image's id.
import_root() {
  local root=$1 version
  version=$(dpkg-deb -f "$cache"/debs/llama.cpp-tools_*.deb Version)
  tar -C "$root" -c --owner=0 --group=0 . | docker import \
    --change 'ENTRYPOINT ["/usr/bin/llama-server"]' --change 'USER 10001:10001' --change 'EXPOSE 8080' \
    --change 'ENV LLAMA_ARG_HOST=0.0.0.0' --change 'ENV LLAMA_ARG_PORT=8080' --change 'ENV LLAMA_ARG_OFFLINE=1' \
    --change 'ENV LLAMA_ARG_MODEL=/models/tinychat-6m-q8_0.gguf' \
    --change "LABEL org.opencontainers.image.version=$version" \
    --change "LABEL dev.fairlead.fingerprint=$(fingerprint)" -
}

# The suite moves: a library that it forgot to bring shows here, and the old image keeps its name.
check_image() {
  local said
  said=$(docker run --rm --network none --read-only --cap-drop ALL "$1" --version 2>&1) && return 0
  docker image rm "$1" >/dev/null
  fail "llama-server of '$suite' does not start in its image:" "$said" \
    "Remove $cache and run this again for newer packages, or try SUITE=sid."
}

require_tools
if [ "$(docker image inspect -f '{{index .Config.Labels "dev.fairlead.fingerprint"}}' "$image" 2>/dev/null)" = "$(fingerprint)" ]; then
  echo "$image is up to date"
  exit 0
fi
download_packages
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
lay_root "$root"
id=$(import_root "$root")
check_image "$id"
docker tag "$id" "$image"
echo "built $image"
