import type { InferenceCaller } from "../auth/principal.ts";
import type { LimitService } from "./limit-service.ts";
import type { LimitedCall, LimitedCaller, Limiter } from "./limiter.ts";
import type { Permit } from "./permit.ts";
import { UNLIMITED } from "./permit.ts";

/** What of a call is counted before it runs. Tokens, estimated. */
export interface CallSize {
  readonly inputTokens: number;
  /** The most that it may generate, as far as its caller said. */
  readonly outputLimit: number | null;
}

/** What the inference host asks about limits. */
export interface CallLimiter {
  /** @throws DomainError `unavailable` when the store cannot be asked what the project's limits are. */
  admit(caller: InferenceCaller, size: CallSize): Promise<Permit>;
  /** What an answer tells that costs nothing. */
  headersFor(caller: InferenceCaller): Promise<Permit["headers"]>;
}

/** Where there are none. */
export const NO_LIMITER: CallLimiter = {
  admit: () => Promise.resolve(UNLIMITED),
  headersFor: () => Promise.resolve({}),
};

/** Of an answer's output, as much is counted before it comes; callers' own limits are often huge, and seldom reached. */
const EXPECTED_OUTPUT_TOKENS = 512;

export function callLimiter(limiter: Limiter, projects: Pick<LimitService, "effective">): CallLimiter {
  const partiesOf = async (caller: InferenceCaller): Promise<Pick<LimitedCall, "caller" | "project">> => ({
    caller: limitedCaller(caller),
    project: { id: caller.projectId, limits: await projects.effective(caller.projectId) },
  });
  return {
    admit: async (caller, { inputTokens, outputLimit }) => {
      const outputTokens = Math.min(outputLimit ?? EXPECTED_OUTPUT_TOKENS, EXPECTED_OUTPUT_TOKENS);
      return limiter.admit({ ...(await partiesOf(caller)), inputTokens, outputTokens });
    },
    headersFor: async (caller) => limiter.headersFor(await partiesOf(caller)),
  };
}

function limitedCaller(caller: InferenceCaller): LimitedCaller | null {
  switch (caller.kind) {
    case "key":
      return { kind: "key", id: caller.keyId, limits: caller.limits };
    case "worker":
      return { kind: "agent", id: caller.agentId, limits: caller.limits };
    case "member":
      return null;
  }
}
