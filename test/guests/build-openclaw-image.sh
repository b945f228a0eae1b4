#!/usr/bin/env bash
# Lays out the npm package openclaw, installed here, as its own image is laid out: Node on the PATH, `openclaw.mjs` in /app, the user `node`
# (1000) at home in /home/node. No image registry is needed.
#
#   build-openclaw-image.sh IMAGE        does nothing when that image is up to date
set -euo pipefail

image=$1
guests=$(cd "$(dirname "$0")" && pwd)
checkout=$(cd "$guests/../.." && pwd)
node=$("$checkout/scripts/lib/with-node" node -p process.execPath)
fingerprint=$({ cat "$guests/build-openclaw-image.sh" "$guests/package-lock.json" && "$node" --version; } | sha256sum | cut -d' ' -f1)

if [ "$(docker image inspect -f '{{index .Config.Labels "dev.fairlead.fingerprint"}}' "$image" 2>/dev/null)" = "$fingerprint" ]; then
  echo "$image is up to date"
  exit 0
fi

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{bin,etc,tmp,home/node,opt/openclaw,usr/bin}
chmod 1777 "$root/tmp"
chown 1000:1000 "$root/home/node"
# What npm was told not to run: the package's first start does it, and would fail on a root that is read-only.
HOME=$root/home/install "$node" "$guests/node_modules/openclaw/openclaw.mjs" --version >/dev/null
rm -rf "$root/home/install"
install -m 755 "$node" "$root/bin/node"
install -m 755 /bin/busybox "$root/bin/busybox"
for applet in sh env cat ls mkdir rm ps; do ln -s busybox "$root/bin/$applet"; done
ln -s ../../bin/busybox "$root/usr/bin/env"
for library in $(ldd "$node" | grep -o '/[^ ]*'); do install -D -m 755 "$library" "$root$library"; done
printf 'root:x:0:0::/:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\nnode:x:1000:\n' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
ln -s opt/openclaw/node_modules/openclaw "$root/app"

docker import \
  --change 'USER 1000:1000' --change 'WORKDIR /app' --change 'ENV PATH=/bin:/usr/bin' \
  --change 'CMD ["node","openclaw.mjs","gateway"]' --change 'EXPOSE 18789' \
  --change "LABEL dev.fairlead.fingerprint=$fingerprint" - "$image" >/dev/null < <(
  tar -c --transform 's,^node_modules,opt/openclaw/node_modules,' -C "$root" . -C "$guests" node_modules
)
echo "built $image"
