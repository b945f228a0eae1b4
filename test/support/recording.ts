import { z } from "zod";

/**
 * What one release's daemon and its platform host said to each other, in order. Ids, tokens and keys are placeholders: a string
 * `{name}` in an answer gives the name its value when the recording is played, and takes it in what the daemon says later.
 */
export const recordingSchema = z.object({
  protocolVersion: z.number(),
  daemonVersion: z.string(),
  steps: z.array(
    z.union([
      /** What people do at this point: the player's stage knows how. */
      z.object({ scene: z.string() }),
      z.object({
        http: z.object({
          method: z.string(),
          path: z.string(),
          bearer: z.string().nullable(),
          body: z.unknown(),
          answer: z.object({ status: z.number(), body: z.unknown() }),
        }),
      }),
      z.object({ open: z.object({ path: z.string(), bearer: z.string() }) }),
      z.object({ daemon: z.unknown() }),
      z.object({ server: z.unknown() }),
    ]),
  ),
});
export type Recording = z.infer<typeof recordingSchema>;
export type RecordedStep = Recording["steps"][number];

/** A JWT of the daemon's, to be signed anew with the player's key. Times are seconds from now. */
export const signedSchema = z.strictObject({
  $sign: z.object({
    claims: z.record(z.string(), z.unknown()),
    secondsFromNow: z.record(z.string(), z.number()),
  }),
});

/** The same value with every string in it replaced. */
export function mapStrings(value: unknown, change: (text: string) => unknown): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((item) => mapStrings(item, change));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, mapStrings(item, change)]));
}
