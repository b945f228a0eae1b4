import { rfc3339 } from "@fairlead/protocol/clock";
import { sweepSchema } from "@fairlead/protocol/machines";
import type { FastifySchema } from "fastify";
import { z } from "zod";
import { reference } from "../http/fields.ts";
import type { PlatformApp } from "../http/platform-host.ts";
import { principalOf, requirePrincipal } from "../http/require-principal.ts";
import type { MachineSweepService } from "./machine-sweep-service.ts";

const sweepNodes = {
  summary: "Compare rented machines with nodes",
  description:
    "Asks every provider that the project's nodes are at, by their tokens, for machines under this installation's label. `orphans` have " +
    "no node and still cost; `missing` are nodes whose machine is not there any more. The server does the same once a day, and " +
    "removes nothing by itself.",
  operationId: "sweepNodes",
  tags: ["Nodes"],
  errors: ["not_found", "permission_denied", "unavailable"],
  body: z.strictObject({
    projectId: reference("The project's id."),
    delete: z.boolean().default(false).describe("Remove the orphans."),
    provider: reference("Where to look besides, as `hetzner`.").optional(),
    providerToken: z.string().min(1).max(4096).optional().describe("For that provider. Used for this call only."),
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
