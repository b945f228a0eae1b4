import { sweepSchema } from "@fairlead/protocol/machines";
import { rfc3339 } from "@fairlead/protocol/values/clock";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import type { PlatformApp } from "../../http/platform-host.ts";
import { reference } from "../../http/requests/fields.ts";
import { principalOf, requirePrincipal } from "../../http/requests/require-principal.ts";
import type { MachineSweepService } from "./machine-sweep-service.ts";

const sweepNodes = {
  summary: "Compare rented machines with nodes",
  description:
    "Checks every provider of the project's nodes, with their tokens, for machines labeled by this installation. `orphans` have " +
    "no node and still cost money; `missing` are nodes whose machine no longer exists. The server also does this once a day, without " +
    "removing anything.",
  operationId: "sweepNodes",
  tags: ["Nodes"],
  errors: ["not_found", "permission_denied", "unavailable"],
  body: z.strictObject({
    projectId: reference("The project ID."),
    delete: z.boolean().default(false).describe("Whether to remove the orphans."),
    provider: reference("Another provider to check, such as `hetzner`.").optional(),
    providerToken: z
      .string()
      .min(1)
      .max(4096)
      .optional()
      .describe("The token for that provider. Used for this call only."),
  }),
  response: { 200: sweepSchema },
} satisfies FastifySchema;

export function registerMachineRoutes(app: PlatformApp, sweeps: MachineSweepService): void {
  const onRequest = requirePrincipal("user");
  app.post("/v1/nodes::sweep", { onRequest, schema: sweepNodes }, async (request) => {
    const { orphans, missing, unseen } = await sweeps.sweep(principalOf(request, "user"), request.body);
    return {
      orphans: orphans.map(({ provider, machine: { id, label, location, ip, createdAt }, deleted, refusal }) => ({
        provider,
        machineId: id,
        nodeId: label,
        location,
        publicIp: ip ?? "",
        createdAt: rfc3339(createdAt),
        deleted,
        message: refusal ?? "",
      })),
      missing: [...missing],
      unseen: [...unseen],
    };
  });
}
