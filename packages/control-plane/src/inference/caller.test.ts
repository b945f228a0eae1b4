import { describe, expect, test } from "vitest";
import type { InferenceCaller } from "../auth/principal.ts";
import { asKey } from "../testing.fixture.ts";
import { authenticateCaller, callersOf, mayCall, requireModel } from "./caller.ts";

const worker: InferenceCaller = { kind: "worker", subjectId: "wkl_1", nodeId: "nod_1", projectId: "prj_1" };

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
        return worker;
      },
    },
  });

  test("are told apart by their credential's form", async () => {
    expect(await authenticateCaller(callers, { authorization: "Bearer flk_a_b" })).toMatchObject({ kind: "key" });
    expect(await authenticateCaller(callers, { authorization: "bearer a.b.c" })).toMatchObject({ kind: "worker" });
    for (const secret of ["a.b", "a.b.c.d", "...."]) await callers.authenticate(secret);
    expect(seen).toEqual(["key flk_a_b", "worker a.b.c", "key a.b", "key a.b.c.d", "key ...."]);
  });

  test.each([undefined, "", "Bearer", "Basic abc", "flk_a_b"])(
    "with %j have sent no credential",
    async (authorization) => {
      await expect(authenticateCaller(callers, { authorization })).rejects.toMatchObject({
        code: "invalid_credential",
        message: expect.stringContaining("Bearer flk_"),
      });
    },
  );

  test("with a key call what its list names; workers whatever their project has", () => {
    const key = asKey("prj_1", { modelAllowList: ["box/*", "fast"] });
    expect(["box/tiny", "fast", "other/tiny", "fas"].map((model) => mayCall(key, model))).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(mayCall(asKey("prj_1"), "any/thing")).toBe(true);
    expect(mayCall(worker, "any/thing")).toBe(true);
    requireModel(key, "fast");
    expect(() => requireModel(key, "other/tiny")).toThrow(
      expect.objectContaining({ code: "model_not_allowed", param: "model" }),
    );
  });
});
