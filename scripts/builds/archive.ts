import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { closeSync, openSync, readSync, statSync, writeFileSync } from "node:fs";
import { basename } from "node:path";

export interface Archive {
  readonly sha256: string;
  readonly bytes: number;
}

/**
 * Packs a folder into a reproducible tar: sorted names, a single time, no owner, modes independent of the
 * umask. Also writes `<file>.sha256` in the format of `sha256sum --check`.
 */
export function packFolder(folder: string, file: string, committedAt: number): Archive {
  const tar = [
    "--create",
    "--format=gnu",
    "--sort=name",
    `--mtime=@${committedAt}`,
    "--owner=0",
    "--group=0",
    "--numeric-owner",
    "--mode=u+rwX,go+rX,go-w",
    "--use-compress-program=gzip --no-name",
    `--file=${file}`,
    `--directory=${folder}`,
    ".",
  ];
  execFileSync("tar", tar, { env: { ...process.env, GZIP: "", LC_ALL: "C" }, stdio: ["ignore", "ignore", "inherit"] });
  const sha256 = sha256Of(file);
  writeFileSync(`${file}.sha256`, `${sha256}  ${basename(file)}\n`);
  return { sha256, bytes: statSync(file).size };
}

function sha256Of(file: string): string {
  const hash = createHash("sha256");
  const chunk = Buffer.alloc(1 << 20);
  const handle = openSync(file, "r");
  try {
    for (let read = readSync(handle, chunk); read > 0; read = readSync(handle, chunk))
      hash.update(chunk.subarray(0, read));
  } finally {
    closeSync(handle);
  }
  return hash.digest("hex");
}

/** Writes formatted JSON with a trailing newline. */
export function writeJson(file: string, value: unknown): void {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}
