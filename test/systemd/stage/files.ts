import type { Box } from "./box.ts";

/** Every file of a machine: its path, and what would tell that it changed. */
export type Files = ReadonlyMap<string, string>;

/** What changes on a machine by itself: logs, and what systemd, Docker and the accounts' tools keep. Nothing else may differ afterwards. */
const ELSEWHERE = [
  "/var/log/",
  "/var/lib/systemd/",
  "/var/tmp/systemd-private-",
  // Docker's own.
  "/var/lib/containerd/",
  // What stood there before the last account came or went.
  "/etc/passwd-",
  "/etc/shadow-",
  "/etc/group-",
  "/etc/gshadow-",
  "/etc/subuid-",
  "/etc/subgid-",
];

const LIST = `
find / -xdev -path /tmp -prune -o -printf '%p\\t%y %m %U %G %l\\n'
find /run -xdev -path '/run/docker*' -prune -o -path '/run/systemd*' -prune -o -path '/run/containerd*' -prune -o \\
  -path '/run/log*' -prune -o -path '/run/credentials*' -prune -o -printf '%p\\t%y %m %U %G %l\\n'
echo
find / -xdev -path /tmp -prune -o -type f -print0 | xargs -0 sha256sum`;

/** Reads all of the root file system and /run; not what Docker keeps, which `docker` itself tells. */
export async function filesOf(box: Box): Promise<Files> {
  const [entries = "", sums = ""] = (await box.run(LIST)).split("\n\n");
  const files = new Map<string, string>();
  for (const line of entries.split("\n")) {
    const [path = "", told = ""] = line.split("\t");
    files.set(path, told);
  }
  for (const line of sums.split("\n")) {
    const path = line.slice(66);
    files.set(path, `${files.get(path)} ${line.slice(0, 64)}`);
  }
  return files;
}

/** @returns one line for each file that came, went or changed. */
export function differences(before: Files, after: Files): readonly string[] {
  const paths = new Set([...before.keys(), ...after.keys()]);
  return [...paths]
    .filter((path) => before.get(path) !== after.get(path) && !ELSEWHERE.some((start) => path.startsWith(start)))
    .map((path) => `${path}: ${before.get(path) ?? "was not there"} -> ${after.get(path) ?? "is gone"}`)
    .toSorted();
}
