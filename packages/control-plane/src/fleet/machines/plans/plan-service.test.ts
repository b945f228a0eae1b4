import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { beforeEach, describe, expect, test } from "vitest";
import { GOOD_TOKEN, MemoryMachines, refusal } from "../memory-machines.fixture.ts";
import { HETZNER_CATALOGUE } from "./hetzner-catalogue.ts";
import { planResource } from "./plan.ts";
import { PlanService } from "./plan-service.ts";

const CATALOGUE = { provider: "memory", at: 5, plans: [] };

describe("plans", () => {
  let clock: TestClock;
  let provider: MemoryMachines;
  let plans: PlanService;

  beforeEach(() => {
    clock = new TestClock();
    provider = new MemoryMachines(() => clock.now());
    plans = new PlanService({ providers: new Map([["memory", provider]]), catalogues: [CATALOGUE], clock });
  });

  test("come from the catalog until a token is used to refresh them, and then from the provider for everyone", async () => {
    expect(await plans.list()).toEqual([{ ...CATALOGUE, from: "catalogue" }]);
    expect(provider.calls).toEqual([]);
    const known = await plans.refresh("memory", GOOD_TOKEN);
    expect(known).toMatchObject({ from: "provider", at: clock.now(), plans: [{ type: "m1" }] });
    expect(await plans.list()).toEqual([known]);
  });

  test("do not change when a refresh is refused", async () => {
    const before = await plans.list();
    await expect(plans.refresh("memory", "wrong")).rejects.toMatchObject({ code: "provider_token_invalid" });
    await expect(plans.refresh("memory", undefined)).rejects.toMatchObject({ code: "invalid_request" });
    await expect(plans.refresh("moon", GOOD_TOKEN)).rejects.toMatchObject({ param: "provider" });
    expect(await plans.list()).toEqual(before);
  });

  test("of a provider with a newer API say that the control plane must be upgraded", async () => {
    provider.faults.refusal = refusal("outdated", "HTTP 410");
    await expect(plans.refresh("memory", GOOD_TOKEN)).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(/HTTP 410\. .*too old for its API; upgrade the control plane/),
      retryAfterSeconds: undefined,
    });
  });

  test("of a provider without tokens are refreshed once they are old, and kept while the provider is unavailable", async () => {
    Object.assign(provider, { needsToken: false });
    provider.tokens.add("");
    expect(await plans.list()).toMatchObject([{ from: "provider" }]);
    clock.advance(60_000);
    await plans.list();
    expect(provider.calls).toEqual(["plans"]);
    clock.advance(3_600_000);
    provider.faults.refusal = refusal("unavailable", "away");
    expect(await plans.list()).toMatchObject([{ from: "provider", plans: [{ type: "m1" }] }]);
    expect(provider.calls).toEqual(["plans", "plans"]);
  });

  test("show the lowest price of all locations", () => {
    const ccx13 = HETZNER_CATALOGUE.plans.find(({ type }) => type === "ccx13");
    const shown = ccx13 && planResource("hetzner", ccx13);
    expect(shown).toMatchObject({
      id: "hetzner:ccx13",
      monthlyPrice: { amount: "12.49" },
      hourlyPrice: { amount: "0.02" },
    });
    expect(shown?.locations).toHaveLength(6);
  });
});
