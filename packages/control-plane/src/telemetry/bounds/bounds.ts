import { BODY_BOUNDS } from "./body-bounds.ts";
import { ENTRANCE_BOUNDS } from "./entrance-bounds.ts";
import { LINK_BOUNDS } from "./link-bounds.ts";
import { MONEY_BOUNDS } from "./money-bounds.ts";
import { SIGN_IN_BOUNDS } from "./sign-in-bounds.ts";
import { TUNNEL_BOUNDS } from "./tunnel-bounds.ts";
import { UPSTREAM_BOUNDS } from "./upstream-bounds.ts";
import { WORKLOAD_BOUNDS } from "./workload-bounds.ts";

/**
 * Every bound on outside input: the source of the table in docs/security.md, where a test checks each row, and of the label of
 * `fairlead_bounds_reached_total`.
 */
export const BOUNDS = {
  ...ENTRANCE_BOUNDS,
  ...SIGN_IN_BOUNDS,
  ...BODY_BOUNDS,
  ...MONEY_BOUNDS,
  ...UPSTREAM_BOUNDS,
  ...LINK_BOUNDS,
  ...TUNNEL_BOUNDS,
  ...WORKLOAD_BOUNDS,
} as const;

export type BoundName = keyof typeof BOUNDS;
