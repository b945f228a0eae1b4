import { z } from "zod";
import { WORKLOAD_TYPE_ENGINE } from "./workload.ts";

/** External access to a node's workload (docs/interface.md §4.4): the URL and token. */

/** Workload kinds of the interface; unspecified means the engine. */
export const connectTypeSchema = z.enum(["WORKLOAD_TYPE_UNSPECIFIED", WORKLOAD_TYPE_ENGINE]);

export const workloadConnectSchema = z
  .object({ gatewayUrl: z.string(), authToken: z.string() })
  .meta({ id: "WorkloadConnect", description: "The URL of a node's workload and the Bearer token for it." });
export type WorkloadConnect = z.infer<typeof workloadConnectSchema>;

export const CONNECT_TOKEN_TTL_SECONDS = 900;

/** The relay's path prefix of a node on the platform host; the rest is the workload's path. */
export const GATEWAY_PATH = (nodeId: string): string => `/v1/nodes/${nodeId}/gateway`;

/** Browsers cannot set headers on a WebSocket, so the token is sent as a subprotocol with this prefix. */
export const TOKEN_SUBPROTOCOL_PREFIX = "fairlead.token.";

/** `aud` of a workload-connect token. Ids and workload names contain no slash. */
export const workloadAudience = (nodeId: string, workload: string): string => `${nodeId}/${workload}`;

const AUDIENCE = /^(nod_[A-Za-z0-9]+)\/([a-z0-9-]{1,40})$/;

/** Claims in addition to the registered ones. */
export const connectClaimsSchema = z.object({
  aud: z.string().regex(AUDIENCE),
  /** The requester: a user, or the node itself. */
  sub: z.string(),
  /** The user's session: the token ends with it. */
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
