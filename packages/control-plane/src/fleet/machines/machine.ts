import { DomainError } from "@fairlead/protocol/errors";
import { withoutTrailing } from "@fairlead/protocol/values/text";
import { z } from "zod";
import type { SealedColumn } from "../../access/auth/sealing/sealed-column.ts";
import type { MachinePlan } from "./machine-provider.ts";

/** The rented machine of a node, as stored in its journal. Pure. Times are Unix milliseconds. */

/**
 * `ordering`: being requested. `booting`: accepted, daemon not enrolled yet. `serving`: in use. `discarding`: being removed, to be
 * requested elsewhere if locations are left. `failed`: there is none, finally. `removing`: the node is being deleted.
 */
export const MACHINE_STEPS = ["ordering", "booting", "serving", "discarding", "failed", "removing"] as const;
export const machineStepSchema = z.enum(MACHINE_STEPS);
export type MachineStep = z.infer<typeof machineStepSchema>;

/** Steps with remaining work. */
export const OPEN_STEPS = ["ordering", "booting", "discarding", "removing"] as const satisfies readonly MachineStep[];

export interface MachineRecord {
  /** Also our request id at the provider: a node has one machine at a time. */
  readonly nodeId: string;
  readonly projectId: string;
  readonly provider: string;
  readonly type: string;
  readonly name: string;
  readonly step: MachineStep;
  /** Remaining locations, the current one first; empty: none left. */
  readonly locations: readonly string[];
  readonly machineId: string | null;
  readonly sealedToken: string | null;
  readonly sealedBootstrap: string | null;
  readonly bootstrapExpiresAt: number | null;
  /** Since when a machine with an unknown id may exist. */
  readonly attemptedAt: number | null;
  readonly deadlineAt: number;
}

export interface PlanName {
  readonly provider: string;
  readonly type: string;
}

/** `<provider>:<type>`; null for anything else. */
export function parsePlanId(planId: string): PlanName | null {
  const [, provider, type] = /^([a-z][a-z0-9-]*):(.+)$/s.exec(planId) ?? [];
  return provider === undefined || type === undefined ? null : { provider, type };
}

export function planIdOf({ provider, type }: PlanName): string {
  return `${provider}:${type}`;
}

/** All other locations of the plan. */
export const ANY_LOCATION = "any";

/**
 * Locations in order. @param location comma-separated names; `any` or none: all other locations, those with stock first.
 * @throws DomainError invalid_request for a location that the plan does not have.
 */
export function wantedLocations(plan: MachinePlan, location: string | undefined): readonly string[] {
  const wanted = (location ?? "").split(",").flatMap((name) => (name.trim() === "" ? [] : [name.trim()]));
  const offered = plan.locations.toSorted((one, other) => Number(other.available) - Number(one.available));
  const names = offered.map(({ name }) => name);
  const unknown = wanted.find((name) => name !== ANY_LOCATION && !names.includes(name));
  if (unknown !== undefined || names.length === 0) {
    const there =
      names.length === 0 ? "it is not offered anywhere at the moment" : `it is offered in ${names.join(", ")}`;
    throw new DomainError(
      "invalid_request",
      `\`location\`: "${unknown ?? location ?? ""}" is not a location of this plan; ${there}.`,
      {
        param: "location",
      },
    );
  }
  const asked = wanted.length === 0 ? [ANY_LOCATION] : wanted;
  return [...new Set(asked.flatMap((name) => (name === ANY_LOCATION ? names : [name])))];
}

const NAME_LENGTH = 63;

/** A unique host name (RFC 1123): the readable identifier and part of the id. */
export function machineName(node: { readonly id: string; readonly identifier: string }): string {
  const [, unique = ""] = node.id.split("_");
  return `${withoutTrailing(node.identifier.slice(0, NAME_LENGTH - unique.length - 1), "-")}-${unique}`;
}

/** The sealing context of the columns. */
export function tokenContext(nodeId: string): string {
  return `machine token ${nodeId}`;
}

export function bootstrapContext(nodeId: string): string {
  return `machine bootstrap ${nodeId}`;
}

/** What the master key seals in this room. */
export const SEALED_MACHINES: readonly SealedColumn[] = [
  {
    table: "machine",
    column: "sealed_token",
    key: ["node_id"],
    also: [],
    contextOf: ({ node_id: nodeId = "" }) => tokenContext(nodeId),
  },
  {
    table: "machine",
    column: "sealed_bootstrap",
    key: ["node_id"],
    also: [],
    contextOf: ({ node_id: nodeId = "" }) => bootstrapContext(nodeId),
  },
];
