import { describe, expect, test } from "vitest";
import { asUser } from "../../testing.fixture.ts";
import { AUDIT_ACTION_NAMES, type AuditEventRecord, actorOf, auditDetail, auditText, toAuditEvent } from "./audit.ts";

const A_KEY = `flk_0123456789abcdef_${"a".repeat(49)}`;
const A_JWT = `eyJ${"a".repeat(20)}.eyJ${"b".repeat(20)}.${"c".repeat(43)}`;

describe("text in the audit log", () => {
  test.each([
    ["a project key", A_KEY],
    ["a bootstrap token", `flb_${"b".repeat(80)}`],
    ["a one-time link", `fli_${"i".repeat(43)}`],
    ["a signed token", A_JWT],
  ])("never contains %s", (_what, credential) => {
    expect(auditText(`my ${credential}, kept`)).toBe("my [credential], kept");
    expect(auditDetail({ name: credential, [credential]: 1 })).toEqual({ name: "[credential]", "[credential]": 1 });
  });

  test("is unchanged if it contains no credential", () => {
    const text = `Ünï '"<script>; -- flk_ eyJ Bearer`;
    expect(auditText(text)).toBe(text);
    expect(auditDetail({ text, n: 1, yes: true, none: null })).toEqual({ text, n: 1, yes: true, none: null });
  });

  test("contains no NUL, is limited in length, and is never cut inside a character", () => {
    expect(auditText("a\0b")).toBe("ab");
    expect(auditText("x".repeat(10_000))).toBe(`${"x".repeat(255)}…`);
    expect(auditText(`${"x".repeat(254)}🔑🔑`)).toBe(`${"x".repeat(254)}…`);
  });
});

describe("the actor", () => {
  test("is the user, the node, the system component, or the user on whose behalf it acted", () => {
    expect(actorOf(asUser("usr_a"))).toEqual({ type: "user", id: "usr_a" });
    expect(actorOf({ kind: "node", nodeId: "nod_a", projectId: "prj_a" })).toEqual({ type: "node", id: "nod_a" });
    expect(actorOf({ kind: "system", name: "local_admin" })).toEqual({ type: "system", id: "local_admin" });
    expect(actorOf({ kind: "system", name: "sign_in", userId: "usr_a" })).toEqual({ type: "user", id: "usr_a" });
  });
});

test("an event has an RFC 3339 time, and no address if none is known", () => {
  const record: AuditEventRecord = {
    id: "aud_1",
    at: 0,
    action: "node.enroll",
    actor: { type: "node", id: "nod_1", email: null },
    projectId: "prj_1",
    resource: { type: "node", id: "nod_1", name: "Box" },
    address: "192.0.2.1",
    requestId: "req_1",
    detail: {},
  };
  expect(toAuditEvent(record)).toEqual({
    ...record,
    at: "1970-01-01T00:00:00.000Z",
    actor: { type: "node", id: "nod_1" },
  });
});

test("actions are dotted names of a resource and an operation", () => {
  for (const action of AUDIT_ACTION_NAMES) expect(action).toMatch(/^[a-z]+(\.[a-z_]+){1,2}$/);
});
