import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { BuildArchitecture } from "@fairlead/protocol/daemon-builds";
import { ROOT } from "./checkout.ts";
import { packageFolder } from "./packages.ts";

/** Creates the folders that become tars. */

/** Creates `target` atomically. Nothing is left behind on failure. */
export async function writeWhole(target: string, fill: (folder: string) => Promise<void>): Promise<void> {
  mkdirSync(join(target, ".."), { recursive: true });
  const half = mkdtempSync(`${target}.half-`);
  try {
    await fill(half);
    // mkdtemp creates it with mode 0700, but other users must be able to read it.
    chmodSync(half, 0o755);
    rmSync(target, { recursive: true, force: true });
    renameSync(half, target);
  } finally {
    rmSync(half, { recursive: true, force: true });
  }
}

/** Copies Node to `bin/node`. @returns its package folder, for the licences. */
export function placeRuntime(folder: string, arch: BuildArchitecture): string {
  const runtime = packageFolder(`node-linux-${arch}`);
  mkdirSync(join(folder, "bin"), { recursive: true });
  copyFileSync(join(runtime, "bin/node"), join(folder, "bin/node"));
  return runtime;
}

/** Writes a shell script that starts the program. */
export function placeProgram(folder: string, name: string, command: string): void {
  const text = `#!/bin/sh
# Can be started through a link and from any folder.
program=$(readlink -f "$0") || exit 1
root=\${program%/bin/*}
exec "$root/bin/node" ${command} "$@"
`;
  writeFileSync(join(folder, "bin", name), text, { mode: 0o755 });
}

/** Copies files and folders from the checkout to the same paths. */
export function placeFromCheckout(folder: string, paths: readonly string[]): void {
  for (const path of paths) {
    if (!existsSync(join(ROOT, path))) throw new Error(`${path} is not in this checkout`);
    cpSync(join(ROOT, path), join(folder, path), { recursive: true });
  }
}
