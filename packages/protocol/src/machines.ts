import { z } from "zod";

/** What a sweep of rented machines finds. */
export const sweepSchema = z.object({
  orphans: z.array(
    z.object({
      provider: z.string(),
      machineId: z.string(),
      nodeId: z.string().describe("Of the node that it was made for, which has no machine any more, or another one."),
      location: z.string(),
      publicIp: z.string(),
      createdAt: z.string(),
      deleted: z.boolean().describe("Its end was asked for just now."),
      message: z
        .string()
        .describe("Why it could not be removed, in the provider's words; empty where it could, or nobody asked."),
    }),
  ),
  missing: z.array(z.object({ provider: z.string(), nodeId: z.string(), machineId: z.string() })),
  unseen: z
    .array(z.object({ provider: z.string(), message: z.string() }))
    .describe("Where the sweep could not look, and why."),
});
export type Sweep = z.infer<typeof sweepSchema>;
