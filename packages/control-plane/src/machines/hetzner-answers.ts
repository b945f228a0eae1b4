import { z } from "zod";
import type { Machine, MachinePlan, MachineState, PlanLocation, Price } from "./machine-provider.ts";

/** What the Hetzner Cloud API answers, as far as it is read, and what it means in the port's words. */

const id = z.number().int();

const meta = z.object({ pagination: z.object({ next_page: z.number().int().nullable() }) });

export const LABELS = { installation: "fairlead.dev/installation", request: "fairlead.dev/request" } as const;

const serverSchema = z.object({
  id,
  status: z.string(),
  created: z.string(),
  labels: z.record(z.string(), z.string()),
  public_net: z.object({ ipv4: z.object({ ip: z.string() }).nullable() }),
  location: z.object({ name: z.string() }).optional(),
  datacenter: z.object({ location: z.object({ name: z.string() }) }).optional(),
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
    z.object({ name: z.string(), deprecation: z.object({ unavailable_after: z.string() }).nullish() }),
  ),
  prices: z.array(z.object({ location: z.string(), price_hourly: pricesSchema, price_monthly: pricesSchema })),
});
export type ServerType = z.infer<typeof serverTypeSchema>;

const datacenterSchema = z.object({
  location: z.object({ name: z.string() }),
  server_types: z.object({ available: z.array(id) }),
});
export type Datacenter = z.infer<typeof datacenterSchema>;

export const serverAnswer = z.object({ server: serverSchema });
export const createdAnswer = z.object({ server: serverSchema, action: actionSchema });
export const actionAnswer = z.object({ action: actionSchema });
export const serversPage = z.object({ servers: z.array(serverSchema), meta });
export const actionsPage = z.object({ actions: z.array(actionSchema), meta });
export const serverTypesPage = z.object({ server_types: z.array(serverTypeSchema), meta });
export const pricingAnswer = z.object({ pricing: z.object({ currency: z.string().regex(/^[A-Z]{3}$/) }) });
export const datacentersPage = z.object({ datacenters: z.array(datacenterSchema), meta });

const STATES: Readonly<Record<string, MachineState>> = {
  initializing: "pending",
  starting: "pending",
  running: "running",
  stopping: "running",
  deleting: "stopping",
};

/** One that its owner has switched off is `pending`: it may be switched on again. */
export function machineOf(server: Server, failure: string | null = null): Machine {
  const { labels, public_net: net } = server;
  return {
    id: String(server.id),
    label: labels[LABELS.request] ?? "",
    state: failure === null ? (STATES[server.status] ?? "pending") : "failed",
    ip: net.ipv4?.ip ?? null,
    location: server.location?.name ?? server.datacenter?.location.name ?? "",
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
  return error === null ? "its creation failed, without a reason" : `${error.message} (${error.code})`;
}

export interface Market {
  readonly datacenters: readonly Datacenter[];
  /** Of every price; ISO 4217. */
  readonly currency: string;
  /** Unix milliseconds. */
  readonly now: number;
}

/** Null for what is not sold any more. */
export function planOf(type: ServerType, { datacenters, currency, now }: Market): MachinePlan | null {
  const locations = type.locations
    .filter(({ deprecation }) => !deprecation || Date.parse(deprecation.unavailable_after) > now)
    .map(({ name }): PlanLocation => {
      const price = type.prices.find(({ location }) => location === name);
      const available = datacenters.some(
        ({ location, server_types: types }) => location.name === name && types.available.includes(type.id),
      );
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

/** Without the zeros to which the API fills its sixteen places. */
function priceOf(net: string, currency: string): Price {
  const amount = net.includes(".") ? net.replace(/0+$/, "").replace(/\.$/, "") : net;
  return { amount, currency };
}
