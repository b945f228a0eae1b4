#!/usr/bin/env bash
# Builds the demo agent's image from the program in one file, this checkout's Node and this machine's C library. No image registry is needed.
#
#   build-image.sh [IMAGE]        default fairlead/demo-agent:1; does nothing if the image is up to date
#
# Requires the checkout's dependencies (npm ci), a running Docker engine and Linux with glibc.
set -euo pipefail

image=${1:-fairlead/demo-agent:1}
package=$(cd "$(dirname "$0")/.." && pwd)
checkout=$(cd "$package/../.." && pwd)
node=$("$checkout/scripts/lib/with-node" node -p process.execPath)

fail() {
  printf 'build-image: %s\n' "$@" >&2
  exit 1
}

require_tools() {
  local tool
  for tool in docker tar sha256sum ldd; do
    command -v "$tool" >/dev/null || fail "'$tool' is missing. Install it (Debian: apt-get install docker.io tar coreutils libc-bin)."
  done
  [ -x "$checkout/node_modules/.bin/esbuild" ] || fail "dependencies are not installed. Run 'npm ci --ignore-scripts' in $checkout."
  docker info >/dev/null 2>&1 || fail "Docker does not respond. Start it (systemctl start docker) or check that you have access to its socket."
}

bundle() {
  "$checkout/scripts/lib/with-node" esbuild "$package/src/main.ts" --bundle --platform=node --target=node24 --format=esm --log-level=warning
}

# A hash of the image's inputs, to recognize an up-to-date image.
fingerprint() {
  { cat "$package/image/build-image.sh" "$root/app/agent.mjs" && "$node" --version && ldd --version; } | sha256sum | cut -d' ' -f1
}

lay_root() {
  local library
  mkdir -p "$root"/{bin,etc,tmp}
  chmod 1777 "$root/tmp"
  install -m 755 "$node" "$root/bin/node"
  # Name service libraries are loaded dynamically, so ldd does not list them.
  for library in $(ldd "$node" | grep -o '/[^ ]*') $(ldconfig -p | grep -o '/[^ ]*/libnss_\(dns\|files\)\.so\.2' || true); do
    install -D -m 755 "$library" "$root$library"
  done
  echo 'agent:x:10001:10001::/tmp:/usr/sbin/nologin' >"$root/etc/passwd"
  echo 'agent:x:10001:' >"$root/etc/group"
  echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
}

# Prints the new image's ID.
import_root() {
  tar -C "$root" -c --owner=0 --group=0 . | docker import \
    --change 'ENTRYPOINT ["/bin/node","/app/agent.mjs"]' --change 'USER 10001:10001' --change 'EXPOSE 8080' \
    --change 'ENV PORT=8080' \
    --change "LABEL org.opencontainers.image.version=$("$checkout/scripts/lib/with-node" node -p "require('$package/package.json').version")" \
    --change "LABEL dev.fairlead.fingerprint=$1" -
}

check_image() {
  local said
  said=$(docker run --rm --network none --read-only --cap-drop ALL --entrypoint /bin/node "$1" --check /app/agent.mjs 2>&1) && return 0
  docker image rm "$1" >/dev/null
  fail "the demo agent does not start in its image:" "$said"
}

require_tools
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/app"
bundle >"$root/app/agent.mjs"
made_of=$(fingerprint)
if [ "$(docker image inspect -f '{{index .Config.Labels "dev.fairlead.fingerprint"}}' "$image" 2>/dev/null)" = "$made_of" ]; then
  echo "$image is up to date"
  exit 0
fi
lay_root
id=$(import_root "$made_of")
check_image "$id"
docker tag "$id" "$image"
echo "built $image"
