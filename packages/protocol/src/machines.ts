import { z } from "zod";

/** Results of a sweep of rented machines. */
export const sweepSchema = z.object({
  orphans: z.array(
    z.object({
      provider: z.string(),
      machineId: z.string(),
      nodeId: z
        .string()
        .describe("The node it was created for. That node no longer has a machine, or has a different one."),
      location: z.string(),
      publicIp: z.string(),
      createdAt: z.string(),
      deleted: z.boolean().describe("Removal was just requested."),
      message: z
        .string()
        .describe(
          "Why it could not be removed, in the provider's words. Empty if it was removed or removal was not requested.",
        ),
    }),
  ),
  missing: z.array(z.object({ provider: z.string(), nodeId: z.string(), machineId: z.string() })),
  unseen: z
    .array(z.object({ provider: z.string(), message: z.string() }))
    .describe("Providers that could not be checked, and why."),
});
export type Sweep = z.infer<typeof sweepSchema>;
