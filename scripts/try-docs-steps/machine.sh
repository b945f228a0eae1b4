#!/bin/bash
# machine.sh ROOT: makes ROOT the root of this mount and PID namespace and runs the blocks in it.
set -euo pipefail
root=$1

mount --make-rprivate /
# Container runtimes require the root to be a mount point.
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
mkdir -p "$root/run/lock"
cd "$root"
pivot_root . old-root
umount -l /old-root
exec env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb LANG=C.UTF-8 \
  /bin/bash /try/run-blocks.sh
