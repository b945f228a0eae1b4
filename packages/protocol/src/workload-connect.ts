import { z } from "zod";
import { WORKLOAD_TYPE_ENGINE } from "./workload.ts";

/** Reaching a node's workload from outside (interface §4.4, design §6): the address, and the token that opens it. */

/** What the interface lets a caller ask for; unspecified means the engine (design §4). */
export const connectTypeSchema = z.enum(["WORKLOAD_TYPE_UNSPECIFIED", WORKLOAD_TYPE_ENGINE]);

export const workloadConnectSchema = z
  .object({ gatewayUrl: z.string(), authToken: z.string() })
  .meta({ id: "WorkloadConnect", description: "Where a node's workload is reached, and the Bearer token for it." });
export type WorkloadConnect = z.infer<typeof workloadConnectSchema>;

export const CONNECT_TOKEN_TTL_SECONDS = 900;

/** The relay's address of a node, on the platform host; what follows it is the workload's own path. */
export const GATEWAY_PATH = (nodeId: string): string => `/v1/nodes/${nodeId}/gateway`;

/** A browser cannot set headers on a WebSocket: it offers the token as a subprotocol with this prefix. */
export const TOKEN_SUBPROTOCOL_PREFIX = "fairlead.token.";

/** `aud` of a workload-connect token. Ids and workload names hold no slash. */
export const workloadAudience = (nodeId: string, workload: string): string => `${nodeId}/${workload}`;

const AUDIENCE = /^(nod_[A-Za-z0-9]+)\/([a-z0-9-]{1,40})$/;

/** Claims beside the registered ones. */
export const connectClaimsSchema = z.object({
  aud: z.string().regex(AUDIENCE),
  /** Who asked for it: a person, or the node itself. */
  sub: z.string(),
  /** The person's sign-in session: the token ends with it. */
  sid: z.string().optional(),
  project: z.string(),
  /** RFC 7638 thumbprint of the node's signing key: the token ends with the node's identity. */
  key: z.string(),
});
export type ConnectClaims = z.infer<typeof connectClaimsSchema>;

/** @returns the two parts of such an `aud`. */
export function workloadOf(audience: string): { readonly nodeId: string; readonly workload: string } {
  const [, nodeId = "", workload = ""] = AUDIENCE.exec(audience) ?? [];
  return { nodeId, workload };
}
