import { z } from "zod";
import { buildSha256Schema, buildVersionSchema, MAX_BUILD_BYTES } from "./daemon-builds.ts";
import { anyText } from "./values/text.ts";

/** The update request to a daemon, and what the daemon reports about it. */

/** Sent with the desired state, but not part of its generation: engines do not change with the daemon. */
export const wantedDaemonSchema = z.object({
  version: buildVersionSchema,
  /** Id of the request. A version that was rolled back is tried again with a new request. */
  request: anyText(128),
  files: z.array(
    z.object({
      /** As in a build's manifest. A string, so that older daemons accept unknown values. */
      arch: z.string(),
      /** Path on the platform host. */
      path: z.string().regex(/^\/[^/]/, "must be a path"),
      sha256: buildSha256Schema,
      bytes: z.number().int().positive().max(MAX_BUILD_BYTES),
    }),
  ),
  /** The daemon starts after a random delay of up to this many seconds, to spread downloads. */
  spreadSeconds: z.number().min(0),
});
export type WantedDaemon = z.infer<typeof wantedDaemonSchema>;

/** Newer daemons may report others. */
export const DAEMON_UPDATE_STATES = [
  "waiting",
  "downloading",
  "unpacking",
  "checking",
  "restarting",
  "trial",
  "done",
  "rolled_back",
  "refused",
] as const;
export type DaemonUpdateState = (typeof DAEMON_UPDATE_STATES)[number];

export const MAX_UPDATE_MESSAGE = 1024;

/** State of a daemon's last update. */
export const daemonUpdateSchema = z
  .object({
    wanted: anyText(64).describe("The version that the update installs."),
    state: anyText(32).describe(
      `One of ${DAEMON_UPDATE_STATES.join(", ")}. \`done\`, \`rolled_back\` and \`refused\` are final.`,
    ),
    message: anyText(MAX_UPDATE_MESSAGE).describe("The progress of the update, or why it failed, in words."),
    since: anyText(64),
  })
  .meta({ id: "DaemonUpdate" });
export type DaemonUpdate = z.infer<typeof daemonUpdateSchema>;
