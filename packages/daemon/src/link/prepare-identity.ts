import { parseBootstrapToken } from "@fairlead/protocol/enrollment";
import { EXIT, StartError } from "../start-error.ts";
import type { IdentityStore, NodeIdentity } from "../state/identity-store.ts";
import { generateNodeKeys, sha256Of } from "./node-keys.ts";

export interface PreparedIdentity {
  /** On disk, keys included. */
  readonly identity: NodeIdentity;
  /** The bootstrap token to enrol with first, or null where that has been done. */
  readonly enrollWith: string | null;
}

export interface PrepareOptions {
  readonly store: IdentityStore;
  readonly stateDir: string;
  /** What the bootstrap token's file holds, or null without one. */
  readonly token: string | null;
  /** Allows plain http to any host. */
  readonly insecure: boolean;
}

const GET_TOKEN = "get a bootstrap token for this node and start with --bootstrap-token-file FILE";

/** Finds out who this node is, from its state folder and the bootstrap token. @throws StartError where that cannot be told. */
export async function prepareIdentity(options: PrepareOptions): Promise<PreparedIdentity> {
  const { value: known, damaged } = await options.store.load();
  const prepared =
    options.token === null
      ? knownIdentity(known, { damaged, ...options })
      : await withToken(known, options.token, options);
  assertEncrypted(prepared.identity.platformUrl, options.insecure);
  return prepared;
}

function knownIdentity(
  known: NodeIdentity | null,
  { damaged, stateDir }: { damaged: boolean; stateDir: string },
): PreparedIdentity {
  if (known?.enrolled) return { identity: known, enrollWith: null };
  if (damaged) throw new StartError(EXIT.usage, `the identity in ${stateDir} is damaged; ${GET_TOKEN}`);
  throw new StartError(EXIT.usage, `this machine is not enrolled yet (${stateDir}); ${GET_TOKEN}`);
}

async function withToken(known: NodeIdentity | null, text: string, options: PrepareOptions): Promise<PreparedIdentity> {
  const token = parseBootstrapToken(text);
  if (token === null)
    throw new StartError(EXIT.usage, "the bootstrap token's file does not hold a bootstrap token (flb_…)");
  const sameNode = known?.nodeId === token.nodeId;
  if (known?.enrolled && !sameNode) {
    const advice = "give --state-dir another folder, or remove this one to give up the old node";
    throw new StartError(
      EXIT.usage,
      `${options.stateDir} belongs to node ${known.nodeId}, the bootstrap token to ${token.nodeId}; ${advice}`,
    );
  }
  // A credential stays where it was put; the one that has done its work is not used again.
  if (known?.enrolled?.bootstrapTokenSha256 === sha256Of(text)) return { identity: known, enrollWith: null };
  const keys = sameNode && known !== null ? known.keys : await generateNodeKeys();
  const enrolled = sameNode && known !== null ? known.enrolled : null;
  const identity = { platformUrl: token.url, nodeId: token.nodeId, keys, enrolled };
  await options.store.save(identity);
  return { identity, enrollWith: text };
}

/** Tokens would cross the network in the clear (design §6, Install). */
function assertEncrypted(platformUrl: string, insecure: boolean): void {
  const { protocol, hostname } = new URL(platformUrl);
  const loopback = hostname === "localhost" || hostname === "[::1]" || /^127(\.\d+){3}$/.test(hostname);
  if (protocol === "https:" || loopback || insecure) return;
  throw new StartError(
    EXIT.usage,
    `${platformUrl} is plain http to another machine, so credentials could be read on the way; use https, or --insecure if you accept that`,
  );
}
