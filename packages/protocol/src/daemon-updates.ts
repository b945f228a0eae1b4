import { z } from "zod";
import { buildSha256Schema, buildVersionSchema } from "./daemon-builds.ts";
import { anyText } from "./text.ts";

/** How a daemon is told to become another version, and what it says of that. */

/** Comes beside the desired state, and is no part of its generation: engines do not change with the daemon. */
export const wantedDaemonSchema = z.object({
  version: buildVersionSchema,
  /** Of whoever asked. A version that was rolled back is tried again when it comes with another one. */
  request: anyText().max(128),
  files: z.array(
    z.object({
      /** As in a build's manifest. A text, so that an older daemon bears one that it does not know. */
      arch: z.string(),
      /** Of the platform host. */
      path: z.string().regex(/^\/[^/]/, "must be a path"),
      sha256: buildSha256Schema,
      bytes: z.number().int().positive(),
    }),
  ),
  /** The daemon begins at random within so many seconds, so that a whole fleet does not download at once. */
  spreadSeconds: z.number().min(0),
});
export type WantedDaemon = z.infer<typeof wantedDaemonSchema>;

/** A newer daemon may know more of them. */
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

/** How a daemon's last update stands. */
export const daemonUpdateSchema = z
  .object({
    wanted: anyText().max(64).describe("The version that it is about."),
    state: anyText()
      .max(32)
      .describe(
        `One of ${DAEMON_UPDATE_STATES.join(", ")}. Nothing more comes by itself after \`done\`, \`rolled_back\` and \`refused\`.`,
      ),
    message: anyText().max(1024).describe("How far it is, or why it failed; for people."),
    since: anyText().max(64),
  })
  .meta({ id: "DaemonUpdate" });
export type DaemonUpdate = z.infer<typeof daemonUpdateSchema>;
