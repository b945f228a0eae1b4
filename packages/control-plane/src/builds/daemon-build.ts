import { type DaemonBuild, daemonBuildFile, type NamedBuild } from "@fairlead/protocol/daemon-builds";
import { DomainError } from "@fairlead/protocol/errors";

/** Rules about builds of the daemon. */

export type BuildFile = DaemonBuild["files"][number];

/** What can be fetched under one name: a tar, or the text of its checksum. */
export type Download =
  | { readonly kind: "archive"; readonly build: DaemonBuild; readonly file: BuildFile }
  | { readonly kind: "checksum"; readonly text: string; readonly sha256: string };

const CHECKSUM = ".sha256";

/** The newest first; of the same moment, by version. */
export function newestFirst(builds: readonly DaemonBuild[]): readonly DaemonBuild[] {
  return builds.toSorted(
    (a, b) => Date.parse(b.committedAt) - Date.parse(a.committedAt) || b.version.localeCompare(a.version, "en"),
  );
}

/** What a new node is to run: the build of the server's own version where there is one, else the newest. */
export function buildForNewNodes(builds: readonly DaemonBuild[], serverVersion: string): DaemonBuild | null {
  return builds.find(({ version }) => version === serverVersion) ?? newestFirst(builds)[0] ?? null;
}

/** How a bootstrap token names a build. */
export function nameBuild({ version, files }: DaemonBuild): NamedBuild {
  return { version, sha256: Object.fromEntries(files.map(({ arch, sha256 }) => [arch, sha256])) };
}

/** A name is looked up among those that are offered, so that none can lead elsewhere. */
export function findDownload(builds: readonly DaemonBuild[], name: string): Download | null {
  const isChecksum = name.endsWith(CHECKSUM);
  const wanted = isChecksum ? name.slice(0, -CHECKSUM.length) : name;
  for (const build of builds) {
    const file = build.files.find(({ arch }) => daemonBuildFile(build.version, arch) === wanted);
    if (file === undefined) continue;
    if (!isChecksum) return { kind: "archive", build, file };
    return { kind: "checksum", text: `${file.sha256}  ${file.file}\n`, sha256: file.sha256 };
  }
  return null;
}

/** The first and the last byte. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/**
 * What a `Range` header asks for: one range of bytes. Null for anything else: then all of it is sent, as RFC 9110 (14.2) allows.
 * @param validator the answer's entity tag, and the caller's `If-Range`: a file that changed meanwhile is sent whole.
 */
export function byteRange(
  header: string | undefined,
  bytes: number,
  validator: { readonly entityTag: string; readonly ifRange: string | undefined },
): ByteRange | null {
  if (validator.ifRange !== undefined && validator.ifRange !== validator.entityTag) return null;
  const [, from = "", to = ""] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? "") ?? [];
  if (from === "" && to === "") return null;
  const first = from === "" ? Math.max(0, bytes - Number(to)) : Number(from);
  const last = from === "" || to === "" ? bytes - 1 : Math.min(Number(to), bytes - 1);
  return first <= last ? { first, last } : null;
}

export function buildNotFound(): DomainError {
  return new DomainError("not_found", "No such build; `GET /v1/daemon-builds` lists those that there are.");
}
