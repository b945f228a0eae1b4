import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ROLES_BY_OPERATION } from "./access.ts";
import { accessReference } from "./access-reference.ts";
import {
  CALLER_NAMES,
  DAEMON_ROUTES,
  INFERENCE_ROUTES,
  outcomeFor,
  PLATFORM_ROUTES,
  RELAY_ROUTES,
} from "./route-access.ts";

const ALL = [PLATFORM_ROUTES, DAEMON_ROUTES, RELAY_ROUTES, INFERENCE_ROUTES].flatMap((routes) =>
  Object.entries(routes),
);

test("docs/access.md matches the code (regenerate it with `node scripts/generate-docs.ts`)", () => {
  const page = new URL("../../../../../docs/access.md", import.meta.url);
  expect(readFileSync(page, "utf8")).toBe(accessReference());
});

test("the page lists every operation and every route", () => {
  for (const operation of Object.keys(ROLES_BY_OPERATION)) expect(accessReference()).toContain(`| \`${operation}\` |`);
  for (const [route] of ALL) expect(accessReference()).toContain(`| \`${route}\` |`);
});

test("every non-public route rejects callers without a valid credential, all with the same error", () => {
  for (const [route, access] of ALL) {
    const outcomes = (["nobody", "malformed", "expired", "signedOut", "disabledKey"] as const).map((caller) =>
      outcomeFor(access, caller),
    );
    expect({ route, outcomes: [...new Set(outcomes)] }).toEqual({ route, outcomes: [outcomes[0]] });
    expect({ route, yes: outcomes[0] === "yes" }).toEqual({ route, yes: access.for === "anybody" });
  }
});

test("a credential for one host grants nothing on the other", () => {
  const foreign = {
    platform: ["key", "otherKey", "disabledKey", "worker", "connect"],
    inference: ["owner", "node", "browser", "connect"],
    relay: CALLER_NAMES.filter((name) => name !== "connect"),
  };
  const closed = (routes: typeof PLATFORM_ROUTES, callers: readonly string[]): void => {
    for (const [route, access] of Object.entries(routes)) {
      if (access.for === "anybody") continue;
      for (const caller of CALLER_NAMES.filter((name) => callers.includes(name))) {
        expect({ route, caller, outcome: outcomeFor(access, caller) }).not.toMatchObject({ outcome: "yes" });
      }
    }
  };
  closed({ ...PLATFORM_ROUTES, ...DAEMON_ROUTES }, foreign.platform);
  closed(INFERENCE_ROUTES, foreign.inference);
  closed(RELAY_ROUTES, foreign.relay);
});
