import { secretKeySchema, secretNameSchema } from "@fairlead/protocol/secrets";
import { expect, test } from "vitest";
import { readAgentSecretKey, secretKey } from "./secret-key.ts";

const AGENT = "agt_01kc3b6q2v8r5x0m7n4t9w1yzj";

test("an agent's secret is found by its key, even with dots in its name, and every such key is valid", () => {
  for (const name of ["TOKEN", "tls.key", "_", `x.${AGENT}`, "A".repeat(128)]) {
    const key = secretKey("agent", { ownerId: AGENT, name });
    expect(readAgentSecretKey(key)).toEqual({ ownerId: AGENT, name });
    expect(secretKeySchema.parse(key)).toBe(key);
  }
});

test("no secret of a node can have the key of an agent's secret", () => {
  for (const name of ["TOKEN", "agt_1.TOKEN", `${AGENT}_TOKEN`, `x${AGENT}.TOKEN`, AGENT]) {
    expect(readAgentSecretKey(secretKey("node", { ownerId: "nod_1", name: secretNameSchema.parse(name) }))).toBeNull();
  }
  for (const name of [`${AGENT}.TOKEN`, `${AGENT}.`]) expect(secretNameSchema.safeParse(name).success).toBe(false);
});
