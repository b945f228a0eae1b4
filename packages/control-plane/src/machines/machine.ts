import { DomainError } from "@fairlead/protocol/errors";
import { z } from "zod";
import type { MachinePlan } from "./machine-provider.ts";

/** The machine that is rented for a node, as its journal holds it. Pure. Times are Unix milliseconds. */

/**
 * `ordering`: being asked for. `booting`: accepted, and its daemon has not enrolled. `serving`: it is the node's.
 * `discarding`: it goes, and another is asked for while there are places left. `failed`: there is none, for good.
 * `removing`: the node is being deleted.
 */
export const MACHINE_STEPS = ["ordering", "booting", "serving", "discarding", "failed", "removing"] as const;
export const machineStepSchema = z.enum(MACHINE_STEPS);
export type MachineStep = z.infer<typeof machineStepSchema>;

/** Those in which something is left to do. */
export const OPEN_STEPS = ["ordering", "booting", "discarding", "removing"] as const satisfies readonly MachineStep[];

export interface MachineRecord {
  /** Our request id at the provider too: a node has one machine at a time. */
  readonly nodeId: string;
  readonly projectId: string;
  readonly provider: string;
  readonly type: string;
  readonly name: string;
  readonly step: MachineStep;
  /** Where to ask for it, the first now; none: nowhere any more. */
  readonly locations: readonly string[];
  readonly machineId: string | null;
  readonly sealedToken: string | null;
  readonly sealedBootstrap: string | null;
  readonly bootstrapExpiresAt: number | null;
  /** Since when there may be a machine whose id is not known. */
  readonly attemptedAt: number | null;
  readonly deadlineAt: number;
}

export interface PlanName {
  readonly provider: string;
  readonly type: string;
}

/** `<provider>:<type>` (design §6, Provisioning); null for anything else. */
export function parsePlanId(planId: string): PlanName | null {
  const [, provider, type] = /^([a-z][a-z0-9-]*):(.+)$/s.exec(planId) ?? [];
  return provider === undefined || type === undefined ? null : { provider, type };
}

export function planIdOf({ provider, type }: PlanName): string {
  return `${provider}:${type}`;
}

/** Every place that the plan has. */
export const ANY_LOCATION = "any";

/**
 * Where to ask, in order. @param location names with commas between; `any`, or none: every other place that the plan has, those
 * with stock first. @throws DomainError invalid_request for a place that the plan has not.
 */
export function wantedLocations(plan: MachinePlan, location: string | undefined): readonly string[] {
  const wanted = (location ?? "").split(",").flatMap((name) => (name.trim() === "" ? [] : [name.trim()]));
  const offered = plan.locations.toSorted((one, other) => Number(other.available) - Number(one.available));
  const names = offered.map(({ name }) => name);
  const unknown = wanted.find((name) => name !== ANY_LOCATION && !names.includes(name));
  if (unknown !== undefined || names.length === 0) {
    const there = names.length === 0 ? "it is offered nowhere now" : `it is offered in ${names.join(", ")}`;
    throw new DomainError(
      "invalid_request",
      `\`location\`: "${unknown ?? location ?? ""}" is no place of this plan; ${there}.`,
      {
        param: "location",
      },
    );
  }
  const asked = wanted.length === 0 ? [ANY_LOCATION] : wanted;
  return [...new Set(asked.flatMap((name) => (name === ANY_LOCATION ? names : [name])))];
}

const NAME_LENGTH = 63;

/** A host name (RFC 1123) that no other node's machine has: the identifier, for people, and the id's own part. */
export function machineName(node: { readonly id: string; readonly identifier: string }): string {
  const [, unique = ""] = node.id.split("_");
  return `${node.identifier.slice(0, NAME_LENGTH - unique.length - 1).replace(/-+$/, "")}-${unique}`;
}

/** What the columns are sealed under. */
export function tokenContext(nodeId: string): string {
  return `machine token ${nodeId}`;
}

export function bootstrapContext(nodeId: string): string {
  return `machine bootstrap ${nodeId}`;
}
