import { PROTOCOL_VERSIONS } from "@fairlead/protocol/daemon-link";
import { type EnrollAnswer, type EnrollRequest, enrollAnswerSchema } from "@fairlead/protocol/enrollment";
import { fullJitter } from "@fairlead/protocol/values/backoff";
import { urlBelow } from "@fairlead/protocol/values/url";
import { type DaemonLog, reasonOf } from "../process/log.ts";
import { DaemonStartError, EXIT } from "../process/start-error.ts";
import { sleep, type Timers } from "../process/timers.ts";
import { DAEMON_VERSION } from "../process/version.ts";
import type { EnrolledIdentity, IdentityStore, SavedIdentity } from "../state/identity-store.ts";
import { type HttpClient, jsonOf, retryAfterMs } from "./http-client.ts";
import { publicKeys, sha256Of, signEnrollProof } from "./node-keys.ts";
import { isRefusedForGood, PlatformError } from "./platform-answer.ts";
import type { ServerClock } from "./server-clock.ts";

export interface EnrollDeps {
  readonly http: HttpClient;
  readonly store: IdentityStore;
  readonly serverClock: ServerClock;
  readonly timers: Timers;
  readonly random: () => number;
  readonly log: DaemonLog;
}

export interface Enrollment {
  /** Already on disk with its keys: if the response is lost, the request is repeated with the same keys. */
  readonly identity: SavedIdentity;
  /** The complete bootstrap token. */
  readonly token: string;
  readonly operatingSystem: string;
  readonly signal: AbortSignal;
}

const CALL_TIMEOUT_MS = 20_000;
const BACKOFF = { baseMs: 1000, maxMs: 60_000 };

/**
 * Exchanges a bootstrap token for an identity. Retries until the platform host responds: a network that is not up yet
 * must not end the daemon (coreos/fleet#1325).
 * @throws StartError `refused` if the token is rejected.
 */
export async function enroll(
  deps: EnrollDeps,
  enrollment: Enrollment,
): Promise<{ identity: EnrolledIdentity; answer: EnrollAnswer }> {
  // Created once: every attempt sends the same.
  const body = await requestBody(enrollment);
  for (let attempt = 0; ; attempt++) {
    const outcome = await attemptOnce(deps, enrollment, body).catch((error: unknown) => failure(error));
    if ("answer" in outcome) return keep(deps.store, enrollment, outcome.answer);
    const delay = Math.max(outcome.retryAfter, fullJitter(BACKOFF, attempt, deps.random()));
    deps.log.warn({ reason: outcome.reason, retryInMs: delay }, "cannot enrol yet; retrying");
    await sleep(deps.timers, delay, enrollment.signal);
    if (enrollment.signal.aborted) throw new DaemonStartError(EXIT.ok, "stopped before the node was enrolled");
  }
}

type Outcome = { readonly answer: EnrollAnswer } | { readonly reason: string; readonly retryAfter: number };

function failure(error: unknown): Outcome {
  if (isRefusedForGood(error)) {
    const hint = "get a new bootstrap token for this node and start again";
    throw new DaemonStartError(
      EXIT.refused,
      `the platform rejected the bootstrap token (${error.code}): ${error.message}; ${hint}`,
    );
  }
  return { reason: reasonOf(error), retryAfter: 0 };
}

async function requestBody({ identity, token, operatingSystem }: Enrollment): Promise<EnrollRequest> {
  return {
    ...publicKeys(identity.keys),
    proof: await signEnrollProof(identity.keys, { nodeId: identity.nodeId, bootstrapToken: token }),
    daemonVersion: DAEMON_VERSION,
    protocolVersions: [...PROTOCOL_VERSIONS],
    operatingSystem,
  };
}

async function attemptOnce(deps: EnrollDeps, enrollment: Enrollment, body: EnrollRequest): Promise<Outcome> {
  const { identity, token, signal } = enrollment;
  const answer = await deps.http({
    method: "POST",
    url: urlBelow(identity.platformUrl, `/v1/nodes/${encodeURIComponent(identity.nodeId)}/enroll`),
    bearer: token,
    body,
    timeoutMs: CALL_TIMEOUT_MS,
    signal,
  });
  deps.serverClock.learnFromDate(answer.headers.date);
  if (answer.status === 200 || answer.status === 201) return { answer: enrollAnswerSchema.parse(jsonOf(answer)) };
  const error = new PlatformError(answer);
  if (isRefusedForGood(error)) throw error;
  return { reason: error.message, retryAfter: retryAfterMs(answer.headers) ?? 0 };
}

async function keep(
  store: IdentityStore,
  { identity, token }: Enrollment,
  answer: EnrollAnswer,
): Promise<{ identity: EnrolledIdentity; answer: EnrollAnswer }> {
  const { projectId, installationId } = answer;
  const enrolled = { projectId, installationId, bootstrapTokenSha256: sha256Of(token) };
  const kept: EnrolledIdentity = { ...identity, enrolled };
  await store.save(kept);
  return { identity: kept, answer };
}
