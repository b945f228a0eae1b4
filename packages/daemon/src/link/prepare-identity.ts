import { parseBootstrapToken } from "@fairlead/protocol/enrollment";
import { DaemonStartError, EXIT } from "../process/start-error.ts";
import type { IdentityStore, SavedIdentity } from "../state/identity-store.ts";
import { generateNodeKeys, sha256Of } from "./node-keys.ts";

export interface PreparedIdentity {
  /** On disk, with its keys. */
  readonly identity: SavedIdentity;
  /** The bootstrap token to enrol with, or null if already enrolled. */
  readonly enrollWith: string | null;
  /** Files that were lost and have been restored. */
  readonly restored: readonly string[];
}

type Found = Omit<PreparedIdentity, "restored">;

export interface PrepareOptions {
  readonly store: IdentityStore;
  readonly stateDir: string;
  /** Contents of the bootstrap token file, or null. */
  readonly token: string | null;
  /** Allows plain HTTP to any host. */
  readonly insecure: boolean;
}

const GET_TOKEN = "get a bootstrap token for this node and start with --bootstrap-token-file FILE";

/** Determines this node's identity from its state folder and the bootstrap token. @throws StartError if there is none. */
export async function prepareIdentity(options: PrepareOptions): Promise<PreparedIdentity> {
  const { value: known, damaged, restored } = await options.store.recover();
  const prepared =
    options.token === null
      ? knownIdentity(known, { damaged, ...options })
      : await withToken(known, options.token, options);
  assertEncrypted(prepared.identity.platformUrl, options.insecure);
  return { ...prepared, restored };
}

function knownIdentity(
  known: SavedIdentity | null,
  { damaged, stateDir }: { damaged: boolean; stateDir: string },
): Found {
  if (known?.enrolled) return { identity: known, enrollWith: null };
  if (damaged) throw new DaemonStartError(EXIT.usage, `the identity in ${stateDir} is damaged; ${GET_TOKEN}`);
  throw new DaemonStartError(EXIT.usage, `this machine is not enrolled yet (${stateDir}); ${GET_TOKEN}`);
}

async function withToken(known: SavedIdentity | null, text: string, options: PrepareOptions): Promise<Found> {
  const token = parseBootstrapToken(text);
  if (token === null)
    throw new DaemonStartError(EXIT.usage, "the bootstrap token file does not contain a bootstrap token (flb_…)");
  const sameNode = known?.nodeId === token.nodeId;
  if (known?.enrolled && !sameNode) {
    const advice = "use another folder with --state-dir, or delete this one to discard the old node";
    throw new DaemonStartError(
      EXIT.usage,
      `${options.stateDir} belongs to node ${known.nodeId}, but the bootstrap token is for ${token.nodeId}; ${advice}`,
    );
  }
  // The token file may still exist; a used token is not used again.
  if (known?.enrolled?.bootstrapTokenSha256 === sha256Of(text)) return { identity: known, enrollWith: null };
  const keys = sameNode && known !== null ? known.keys : await generateNodeKeys();
  const enrolled = sameNode && known !== null ? known.enrolled : null;
  const identity = { platformUrl: token.url, nodeId: token.nodeId, keys, enrolled };
  await options.store.save(identity);
  return { identity, enrollWith: text };
}

/** Plain HTTP would send tokens in the clear. */
function assertEncrypted(platformUrl: string, insecure: boolean): void {
  const { protocol, hostname } = new URL(platformUrl);
  const loopback = hostname === "localhost" || hostname === "[::1]" || /^127(\.\d+){3}$/.test(hostname);
  if (protocol === "https:" || loopback || insecure) return;
  throw new DaemonStartError(
    EXIT.usage,
    `${platformUrl} is plain HTTP to another machine: others on the network could read credentials; use HTTPS, or --insecure to accept that`,
  );
}
