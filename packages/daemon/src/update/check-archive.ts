import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

export interface ArchiveLimits {
  readonly maxEntries: number;
  /** Limits for the unpacked contents. */
  readonly maxBytes: number;
}

/** A build has a few hundred files and a few hundred MB; the compressed size says nothing about the unpacked size. */
const LIMITS: ArchiveLimits = { maxEntries: 20_000, maxBytes: 2_000_000_000 };
/** A file or folder without special bits in `tar --list --verbose`: `-rwxr-xr-x 0/0  123 2026-01-01 00:00 ./bin/x`. */
const ENTRY = /^[-d][rwx-]{9} \d+\/\d+ +(\d+) \S+ \S+ (.*)$/;

/** Checks a tar's list before unpacking. @throws Error unless it contains only files and folders inside its own folder */
export async function checkArchive(file: string, limits: ArchiveLimits = LIMITS): Promise<void> {
  const list = ["--list", "--verbose", "--gzip", "--numeric-owner", "--quoting-style=escape", `--file=${file}`];
  const tar = spawn("env", ["LC_ALL=C", "tar", ...list], { stdio: ["ignore", "pipe", "ignore"] });
  const ended = once(tar, "close");
  let entries = 0;
  let bytes = 0;
  try {
    for await (const line of createInterface(tar.stdout)) {
      const [, size, name] = ENTRY.exec(line) ?? [];
      if (size === undefined || name === undefined)
        throw new Error(`the archive contains an entry that is not a file or folder: ${line}`);
      if (name.startsWith("/") || name.split("/").includes(".."))
        throw new Error(`the archive contains a path outside its folder: ${name}`);
      entries += 1;
      bytes += Number(size);
      if (entries > limits.maxEntries) throw new Error(`the archive contains more than ${limits.maxEntries} files`);
      if (bytes > limits.maxBytes) throw new Error(`the unpacked archive exceeds ${limits.maxBytes} bytes`);
    }
  } catch (error) {
    tar.kill();
    throw error;
  }
  const [code] = (await ended) as [number | null];
  if (code !== 0) throw new Error("the archive is incomplete");
}
