import { type DaemonBuild, daemonBuildFile, type NamedBuild } from "@fairlead/protocol/daemon-builds";
import { DomainError } from "@fairlead/protocol/errors";

/** Rules about builds of the daemon. */

export type BuildFile = DaemonBuild["files"][number];

/** One download: a tar, or the text of its checksum. */
export type Download =
  | { readonly kind: "archive"; readonly build: DaemonBuild; readonly file: BuildFile }
  | { readonly kind: "checksum"; readonly text: string; readonly sha256: string };

const CHECKSUM = ".sha256";

/** Newest first; at the same time, by version. */
export function newestFirst(builds: readonly DaemonBuild[]): readonly DaemonBuild[] {
  return builds.toSorted(
    (a, b) => Date.parse(b.committedAt) - Date.parse(a.committedAt) || b.version.localeCompare(a.version, "en"),
  );
}

/** The build for new nodes: the server's own version if available, otherwise the newest. */
export function buildForNewNodes(builds: readonly DaemonBuild[], serverVersion: string): DaemonBuild | null {
  return builds.find(({ version }) => version === serverVersion) ?? newestFirst(builds)[0] ?? null;
}

/** The form in which a bootstrap token names a build. */
export function nameBuild({ version, files }: DaemonBuild): NamedBuild {
  return { version, sha256: Object.fromEntries(files.map(({ arch, sha256 }) => [arch, sha256])) };
}

/** Names are looked up among the available builds, so no path can be injected. */
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

/** First and last byte. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/**
 * Parses a `Range` header with a single byte range. Null for anything else: then the whole file is sent, as RFC 9110 (14.2) allows.
 * @param validator the entity tag and the caller's `If-Range`; a changed file is sent as a whole.
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
  return new DomainError("not_found", "There is no such build. `GET /v1/daemon-builds` lists all builds.");
}
