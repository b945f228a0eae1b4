import type { Plan } from "@fairlead/protocol/plans";
import { type MachinePlan, type PlanLocation, type Price } from "../machine-provider.ts";

/** What a node can be created on besides a machine that one has (docs/provisioning.md). Pure. */

export interface PlanCatalogue {
  readonly provider: string;
  /** When it was true; Unix milliseconds. */
  readonly at: number;
  readonly plans: readonly MachinePlan[];
}

export function planResource(provider: string, plan: MachinePlan): Plan {
  const { type, cores, memoryMb, diskGb, gpu, locations } = plan;
  return {
    id: `${provider}:${type}`,
    provider,
    type,
    cores,
    memoryMb,
    diskGb,
    gpu,
    monthlyPrice: lowest(locations, "monthlyPrice"),
    hourlyPrice: lowest(locations, "hourlyPrice"),
    locations: locations.map((location) => ({ ...location })),
  };
}

/** A provider has one currency for all its places. */
function lowest(locations: readonly PlanLocation[], which: "monthlyPrice" | "hourlyPrice"): Price | null {
  const prices = locations.flatMap((location) => location[which] ?? []);
  return prices.toSorted((one, other) => Number(one.amount) - Number(other.amount))[0] ?? null;
}
