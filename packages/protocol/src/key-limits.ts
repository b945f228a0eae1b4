import type { KeyLimits } from "./resources.ts";

export const NO_LIMITS: KeyLimits = {
  modelAllowList: null,
  requestsPerMinute: null,
  tokensPerMinute: null,
  parallelCalls: null,
  budget: { total: null, daily: null, monthly: null },
};

/** @param model as the caller names it. */
export function isAllowedModel(allowList: KeyLimits["modelAllowList"], model: string): boolean {
  if (allowList === null || allowList.includes(model)) return true;
  const slash = model.indexOf("/");
  return slash > 0 && slash < model.length - 1 && allowList.includes(`${model.slice(0, slash)}/*`);
}
