import { withoutTrailing } from "@fairlead/protocol/values/text";
import { z } from "zod";
import type { Machine, MachinePlan, MachineState, PlanLocation, Price } from "../machine-provider.ts";

/** The parts of Hetzner Cloud API responses that are used, and their meaning. */

const id = z.number().int();

const meta = z.object({ pagination: z.object({ next_page: z.number().int().nullable() }) });

export const HETZNER_LABELS = { installation: "fairlead.dev/installation", request: "fairlead.dev/request" } as const;

const serverSchema = z.object({
  id,
  status: z.string(),
  created: z.string(),
  labels: z.record(z.string(), z.string()),
  public_net: z.object({ ipv4: z.object({ ip: z.string() }).nullable() }),
  location: z.object({ name: z.string() }),
});
type Server = z.infer<typeof serverSchema>;

const actionSchema = z.object({
  id,
  command: z.string(),
  status: z.enum(["running", "success", "error"]),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
});
export type Action = z.infer<typeof actionSchema>;

const pricesSchema = z.object({ net: z.string() });

const serverTypeSchema = z.object({
  id,
  name: z.string(),
  cores: z.number(),
  memory: z.number(),
  disk: z.number(),
  locations: z.array(
    z.object({
      name: z.string(),
      deprecation: z.object({ unavailable_after: z.string() }).nullish(),
      available: z.boolean(),
    }),
  ),
  prices: z.array(z.object({ location: z.string(), price_hourly: pricesSchema, price_monthly: pricesSchema })),
});
export type ServerType = z.infer<typeof serverTypeSchema>;

export const serverAnswer = z.object({ server: serverSchema });
export const createdAnswer = z.object({ server: serverSchema, action: actionSchema });
export const actionAnswer = z.object({ action: actionSchema });
export const serversPage = z.object({ servers: z.array(serverSchema), meta });
export const actionsPage = z.object({ actions: z.array(actionSchema), meta });
export const serverTypesPage = z.object({ server_types: z.array(serverTypeSchema), meta });
export const pricingAnswer = z.object({ pricing: z.object({ currency: z.string().regex(/^[A-Z]{3}$/) }) });

const STATES: Readonly<Record<string, MachineState>> = {
  initializing: "pending",
  starting: "pending",
  running: "running",
  stopping: "running",
  deleting: "stopping",
};

/** A machine switched off by its owner is `pending`, because it may be switched on again. */
export function machineOf(server: Server, failure: string | null = null): Machine {
  const { labels, public_net: net } = server;
  return {
    id: String(server.id),
    label: labels[HETZNER_LABELS.request] ?? "",
    state: failure === null ? (STATES[server.status] ?? "pending") : "failed",
    ip: net.ipv4?.ip ?? null,
    location: server.location.name,
    createdAt: Date.parse(server.created),
    failure,
  };
}

export function failureOf(actions: readonly Action[]): string | null {
  const failed = actions.find(({ command, status }) => status === "error" && STARTING.has(command));
  return failed === undefined ? null : wordsOf(failed);
}

const STARTING: ReadonlySet<string> = new Set(["create_server", "start_server"]);

function wordsOf({ error }: Action): string {
  return error === null ? "its creation failed without a reason" : `${error.message} (${error.code})`;
}

export interface Market {
  /** Currency of all prices; ISO 4217. */
  readonly currency: string;
  /** Unix milliseconds. */
  readonly now: number;
}

/** Null for discontinued types. */
export function planOf(type: ServerType, { currency, now }: Market): MachinePlan | null {
  const locations = type.locations
    .filter(({ deprecation }) => !deprecation || Date.parse(deprecation.unavailable_after) > now)
    .map(({ name, available }): PlanLocation => {
      const price = type.prices.find(({ location }) => location === name);
      return {
        name,
        available,
        monthlyPrice: price ? priceOf(price.price_monthly.net, currency) : null,
        hourlyPrice: price ? priceOf(price.price_hourly.net, currency) : null,
      };
    });
  if (locations.length === 0) return null;
  const { name, cores, memory, disk: diskGb } = type;
  return { type: name, cores, memoryMb: Math.round(memory * 1024), diskGb, gpu: null, locations };
}

/** Removes the API's padding zeros. */
function priceOf(net: string, currency: string): Price {
  const amount = net.includes(".") ? withoutTrailing(net, "0").replace(/\.$/, "") : net;
  return { amount, currency };
}
