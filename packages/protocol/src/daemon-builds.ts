import { z } from "zod";

/** Builds of the daemon, as `scripts/build-daemon` makes them and the platform host serves them. */

export const BUILD_ARCHITECTURES = ["x64", "arm64"] as const;
export type BuildArchitecture = (typeof BUILD_ARCHITECTURES)[number];

/** A name of folders and files, on servers and on nodes: nothing in it may lead out of its folder. */
export const buildVersionSchema = z
  .string()
  .max(64)
  .regex(/^[0-9A-Za-z]+([.-][0-9A-Za-z]+)*$/, "must be a version such as 1.2.3 or 1.2.3-rc.1");

export const buildSha256Schema = z.string().regex(/^[0-9a-f]{64}$/, "must be a SHA-256 in lower-case hexadecimal");

/** `fairlead-daemon-1.2.3-linux-x64.tar.gz` */
export function daemonBuildFile(version: string, arch: BuildArchitecture): string {
  return `fairlead-daemon-${version}-linux-${arch}.tar.gz`;
}

/** One tar for one processor architecture. */
export const daemonBuildFileSchema = z.object({
  arch: z.enum(BUILD_ARCHITECTURES),
  file: z.string(),
  sha256: buildSha256Schema,
  bytes: z.number().int().positive(),
});

/** `manifest.json` beside the tars of one version. */
export const daemonBuildSchema = z
  .object({
    version: buildVersionSchema,
    commit: z.string(),
    /** RFC 3339. */
    committedAt: z.iso.datetime(),
    /** Of the daemon link. */
    protocolVersions: z.array(z.number().int()).min(1),
    files: z.array(daemonBuildFileSchema).min(1),
  })
  .refine(({ version, files }) => files.every(({ arch, file }) => file === daemonBuildFile(version, arch)), {
    error: "a file's name must say its version and architecture",
  });
export type DaemonBuild = z.infer<typeof daemonBuildSchema>;

/** `GET /v1/daemon-builds`, the newest first. */
export const daemonBuildListSchema = z.object({
  daemonBuilds: z.array(daemonBuildSchema),
  nextPageToken: z.string(),
  serverVersion: z.string().describe("The release of this control plane."),
});

/** What a bootstrap token says of the build to install. */
export const namedBuildSchema = z.object({
  version: buildVersionSchema,
  sha256: z.partialRecord(z.enum(BUILD_ARCHITECTURES), buildSha256Schema),
});
export type NamedBuild = z.infer<typeof namedBuildSchema>;
