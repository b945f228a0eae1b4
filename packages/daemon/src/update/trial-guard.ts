import { join } from "node:path";
import { linkTarget } from "./install-layout.ts";
import { TRIAL_STARTS } from "./trial-rules.ts";

/**
 * What brings the version before back where the new one does not even start: a script that systemd runs before each start
 * (`ExecStartPre`), for as long as a version is on trial. The version before writes it, since the new one may be broken.
 */

export const guardFolder = (root: string): string => join(root, "trial");
export const GUARD_SCRIPT = "guard.sh";
/** A link to the version before. Moved to `current` it both turns back and shows that it was done: one step, on a full disk too. */
export const GUARD_BACK = "back";
/** Each start takes one of these away. */
export const startFiles: readonly string[] = Array.from({ length: TRIAL_STARTS }, (_, n) => `start-${n + 1}`);

/** Versions hold nothing that a shell would read otherwise (`buildVersionSchema`). */
export function guardScript({ from, to }: { readonly from: string; readonly to: string }): string {
  return `#!/bin/sh
# Version ${to} of the daemon is on trial. Each start takes one file start-* away; when none is left, version ${from} takes over again.
trial=\${0%/*}
root=\${trial%/*}
[ "$(readlink "$root/current")" = "${linkTarget(to)}" ] || exit 0
for start in "$trial"/start-*; do
  [ -e "$start" ] && rm -f "$start" && exit 0
done
mv -T "$trial/${GUARD_BACK}" "$root/current" || exit 0
echo "fairlead-daemon ${to} ended ${TRIAL_STARTS} times before it had proven itself; starting version ${from} again" >&2
`;
}
