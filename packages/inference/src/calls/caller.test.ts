import { describe, expect, test } from "vitest";
import type { InferenceCaller } from "../ports/inference-caller.ts";
import { asAgent, asKey } from "../testing/callers.ts";
import { authenticateCaller, callersOf, mayCall, requireModel } from "./caller.ts";

const member: InferenceCaller = { kind: "member", userId: "usr_1", projectId: "prj_1" };

describe("callers of the inference host", () => {
  const seen: string[] = [];
  const callers = callersOf({
    keys: {
      authenticate: async (secret) => {
        seen.push(`key ${secret}`);
        return asKey("prj_1");
      },
    },
    workers: {
      authenticate: async (secret) => {
        seen.push(`worker ${secret}`);
        return asAgent("prj_1");
      },
    },
  });

  test("are distinguished by the form of their credential", async () => {
    expect(await authenticateCaller(callers, { authorization: "Bearer flk_a_b" })).toMatchObject({ kind: "key" });
    expect(await authenticateCaller(callers, { authorization: "bearer a.b.c" })).toMatchObject({ kind: "worker" });
    for (const secret of ["a.b", "a.b.c.d", "...."]) await callers.authenticate(secret);
    expect(seen).toEqual(["key flk_a_b", "worker a.b.c", "key a.b", "key a.b.c.d", "key ...."]);
  });

  test.each([undefined, "", "Bearer", "Basic abc", "flk_a_b"])("have no credential with %j", async (authorization) => {
    await expect(authenticateCaller(callers, { authorization })).rejects.toMatchObject({
      code: "invalid_credential",
      message: expect.stringContaining("Bearer flk_"),
    });
  });

  test.each([
    ["key", asKey],
    ["agent", asAgent],
  ] as const)("can call only the models in the allow list of their %s", (whose, as) => {
    const caller = as("prj_1", { modelAllowList: ["box/*", "fast"] });
    const models = ["box/tiny", "fast", "other/tiny", "fas"];
    expect(models.filter((model) => mayCall(caller, model))).toEqual(["box/tiny", "fast"]);
    expect(mayCall(as("prj_1"), "any/thing")).toBe(true);
    requireModel(caller, "fast");
    const message = expect.stringMatching(new RegExp(`^This ${whose} may not call .* its allow list`));
    const refusal = { code: "model_not_allowed", param: "model", message };
    expect(() => requireModel(caller, "other/tiny")).toThrow(expect.objectContaining(refusal));
  });

  test("can call every model of their project if they chat as members", () => {
    expect(mayCall(member, "any/thing")).toBe(true);
  });
});
