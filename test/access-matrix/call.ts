import type { Caller } from "../../packages/control-plane/src/access/auth/route-access.ts";
import type { World } from "./world.ts";

/**
 * How a route is called so that whoever is let in gets a good answer: valid paths, bodies and rows. Calls that change something
 * make the rows that they need anew for every cell, so that no cell finds what an earlier one left.
 */
export interface Call {
  readonly path: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as a form. */
  readonly form?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Where the caller's credential hangs on a row that was made for this cell. */
  readonly bearer?: string;
  readonly cookie?: string;
  /** Texts that only who was let in is answered, where a good answer would take an engine or a whole provider. */
  readonly letIn?: readonly string[];
}

export type MakeCall = (world: World, caller: Caller) => Call | Promise<Call>;

/** Stands wherever a call carries a secret of its own; it must turn up nowhere. */
export const SECRET = "m4trix-s3cret-value";

export const at =
  (path: string): MakeCall =>
  () => ({ path });

/** The call as it goes out: the caller's own credential, or the one that was made for the cell. */
export function wireOf(world: World, caller: Caller, call: Call): { headers: Record<string, string>; body?: string } {
  const own = world.credential(caller);
  const bearer = call.bearer ?? own.bearer;
  const cookie = call.cookie ?? own.cookie;
  const headers: Record<string, string> = {
    ...call.headers,
    ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
    ...(cookie === undefined ? {} : { cookie }),
  };
  if (call.form !== undefined) {
    headers["content-type"] = "application/x-www-form-urlencoded";
    return { headers, body: new URLSearchParams(call.form).toString() };
  }
  if (call.body === undefined) return { headers };
  headers["content-type"] = "application/json";
  return { headers, body: JSON.stringify(call.body) };
}
