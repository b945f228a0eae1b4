import type { CallLimiter } from "@fairlead/inference/ports/call-limiter";
import type { InferenceCaller } from "@fairlead/inference/ports/inference-caller";
import type { LimitService } from "./limit-service.ts";
import type { LimitedCall, LimitedCaller, Limiter } from "./limiter.ts";

export function callLimiter(limiter: Limiter, projects: Pick<LimitService, "effective">): CallLimiter {
  const partiesOf = async (caller: InferenceCaller): Promise<Pick<LimitedCall, "caller" | "project">> => ({
    caller: limitedCaller(caller),
    project: { id: caller.projectId, limits: await projects.effective(caller.projectId) },
  });
  return {
    admit: async (caller, size) => limiter.admit({ ...(await partiesOf(caller)), ...size }),
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
