import { z } from "zod";

/** Daemon builds, created by `scripts/build-daemon` and served by the platform host. */

/** Maximum size of a tar; a build has about a tenth of it. */
export const MAX_BUILD_BYTES = 1_000_000_000;

export const BUILD_ARCHITECTURES = ["x64", "arm64"] as const;
export type BuildArchitecture = (typeof BUILD_ARCHITECTURES)[number];

/** Used in paths on servers and nodes, so it must not be able to leave its folder. */
export const buildVersionSchema = z
  .string()
  .max(64)
  .regex(/^[0-9A-Za-z]+([.-][0-9A-Za-z]+)*$/, "must be a version such as 1.2.3 or 1.2.3-rc.1");

export const buildSha256Schema = z.string().regex(/^[0-9a-f]{64}$/, "must be a SHA-256 hash in lowercase hexadecimal");

/** `fairlead-daemon-1.2.3-linux-x64.tar.gz` */
export function daemonBuildFile(version: string, arch: BuildArchitecture): string {
  return `fairlead-daemon-${version}-linux-${arch}.tar.gz`;
}

/** One tar for one processor architecture. */
export const daemonBuildFileSchema = z.object({
  arch: z.enum(BUILD_ARCHITECTURES),
  file: z.string(),
  sha256: buildSha256Schema,
  bytes: z.number().int().positive().max(MAX_BUILD_BYTES),
});

/** `manifest.json` next to the tars of one version. */
export const daemonBuildSchema = z
  .object({
    version: buildVersionSchema,
    commit: z.string(),
    /** RFC 3339. */
    committedAt: z.iso.datetime(),
    /** Versions of the daemon link. */
    protocolVersions: z.array(z.number().int()).min(1),
    files: z.array(daemonBuildFileSchema).min(1),
  })
  .refine(({ version, files }) => files.every(({ arch, file }) => file === daemonBuildFile(version, arch)), {
    error: "the file name must contain its version and architecture",
  });
export type DaemonBuild = z.infer<typeof daemonBuildSchema>;

/** `GET /v1/daemon-builds`, newest first. */
export const daemonBuildListSchema = z.object({
  daemonBuilds: z.array(daemonBuildSchema),
  nextPageToken: z.string(),
  serverVersion: z.string().describe("The release of this control plane."),
});

/** The build to install, as named in a bootstrap token. */
export const namedBuildSchema = z.object({
  version: buildVersionSchema,
  sha256: z.partialRecord(z.enum(BUILD_ARCHITECTURES), buildSha256Schema),
});
export type NamedBuild = z.infer<typeof namedBuildSchema>;
