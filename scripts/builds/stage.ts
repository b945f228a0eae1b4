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

/** Folders that become tars. */

/** Fills a folder of its own beside `target`, and puts it there when it is whole; what failed leaves nothing. */
export async function writeWhole(target: string, fill: (folder: string) => Promise<void>): Promise<void> {
  mkdirSync(join(target, ".."), { recursive: true });
  const half = mkdtempSync(`${target}.half-`);
  try {
    await fill(half);
    // Made for its owner alone; a server under another account reads it.
    chmodSync(half, 0o755);
    rmSync(target, { recursive: true, force: true });
    renameSync(half, target);
  } finally {
    rmSync(half, { recursive: true, force: true });
  }
}

/** Node itself, as `bin/node`. @returns the folder of its package, for the licences. */
export function placeRuntime(folder: string, arch: BuildArchitecture): string {
  const runtime = packageFolder(`node-linux-${arch}`);
  mkdirSync(join(folder, "bin"), { recursive: true });
  copyFileSync(join(runtime, "bin/node"), join(folder, "bin/node"));
  return runtime;
}

/** A program that people and systemd start, in the shell that every machine has. */
export function placeProgram(folder: string, name: string, command: string): void {
  const text = `#!/bin/sh
# Started by its link or its path, from any folder.
program=$(readlink -f "$0") || exit 1
root=\${program%/bin/*}
exec "$root/bin/node" ${command} "$@"
`;
  writeFileSync(join(folder, "bin", name), text, { mode: 0o755 });
}

/** Files and folders of the checkout, at the same places. */
export function placeFromCheckout(folder: string, paths: readonly string[]): void {
  for (const path of paths) {
    if (!existsSync(join(ROOT, path))) throw new Error(`${path} is not in this checkout`);
    cpSync(join(ROOT, path), join(folder, path), { recursive: true });
  }
}
