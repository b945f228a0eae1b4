import { Agent } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import type { AuditAction } from "../../packages/control-plane/src/access/audit/audit.ts";
import {
  CALLER_NAMES,
  type Caller,
  outcomeFor,
  PLATFORM_ROUTES,
  type RouteAccess,
} from "../../packages/control-plane/src/access/auth/route-access.ts";
import { rawCall } from "../support/raw-http.ts";
import { SECRET, wireOf } from "./call.ts";
import { PLATFORM_CALLS } from "./calls.ts";
import { PASSWORD, World } from "./world.ts";

/** What each route that changes something leaves in the audit log. */
const ACTIONS: Readonly<Record<string, readonly AuditAction[]>> = {
  "POST /account/name": ["user.rename"],
  "POST /account/password": ["user.password_change"],
  "POST /account/providers/{provider}/disconnect": ["user.unlink"],
  "POST /account/sessions": ["session.revoke"],
  "POST /consent": ["oauth.authorize"],
  "POST /device/decision": ["oauth.device_deny"],
  "POST /invitations/{token}": ["user.create", "session.sign_in", "member.join"],
  "POST /reset/{token}": ["user.password_reset", "session.sign_in"],
  "POST /sign-in": ["session.sign_in"],
  "POST /sign-out": ["session.sign_out"],
  "PATCH /v1/me": ["user.rename"],
  "DELETE /v1/me/sessions/{id}": ["session.revoke"],
  "POST /v1/nodes:sweep": ["machine.sweep"],
  "POST /v1/agents": ["agent.create"],
  "PATCH /v1/agents/{id}": ["agent.update"],
  "PATCH /v1/agents/{id}/limits": ["agent.limits"],
  "DELETE /v1/agents/{id}": ["agent.delete"],
  "POST /v1/agents/{id}:start": ["agent.start"],
  "POST /v1/agents/{id}:stop": ["agent.stop"],
  "DELETE /v1/agents/{id}/secrets/{name}": ["agent.secret.delete"],
  "PUT /v1/agents/{id}/secrets/{name}": ["agent.secret.put"],
  "POST /v1/nodes": ["node.create"],
  "PATCH /v1/nodes/{id}": ["node.update"],
  "DELETE /v1/nodes/{id}": ["node.delete"],
  "PUT /v1/daemon-version": ["daemon.version"],
  "PUT /v1/nodes/{id}/daemon-version": ["daemon.version"],
  "PUT /v1/projects/{id}/daemon-version": ["daemon.version"],
  "POST /v1/nodes/{id}:drain": ["node.drain"],
  "POST /v1/nodes/{id}:restart-workload": ["node.restart"],
  "POST /v1/nodes/{id}:resume": ["node.resume"],
  "POST /v1/nodes/{id}/bootstrap-tokens": ["node.bootstrap"],
  "POST /v1/nodes/{id}/enroll": ["node.enroll"],
  "DELETE /v1/nodes/{node_id}/secrets/{name}": ["node.secret.delete"],
  "PUT /v1/nodes/{node_id}/secrets/{name}": ["node.secret.put"],
  "POST /v1/oauth/token": ["session.sign_in"],
  "PATCH /v1/projects/{id}/limits": ["project.limits"],
  "PATCH /v1/projects/{id}": ["project.rename"],
  "DELETE /v1/projects/{id}": ["project.delete"],
  "DELETE /v1/projects/{id}/aliases/{name}": ["alias.delete"],
  "PUT /v1/projects/{id}/aliases/{name}": ["alias.put"],
  "POST /v1/projects/{id}/credits": ["billing.credit"],
  "POST /v1/projects/{id}/providers": ["provider.create"],
  "DELETE /v1/projects/{id}/providers/{name}": ["provider.delete"],
  "PATCH /v1/projects/{id}/providers/{name}": ["provider.update"],
  "POST /v1/projects": ["project.create"],
  "DELETE /v1/projects/{project_id}/invitations/{id}": ["invitation.revoke"],
  "POST /v1/projects/{project_id}/members": ["member.invite"],
  "DELETE /v1/projects/{project_id}/members/{user_id}": ["member.remove"],
  "PATCH /v1/projects/{project_id}/members/{user_id}": ["member.update"],
  "POST /v1/projects/{project_id}/keys": ["key.create"],
  "PATCH /v1/projects/{project_id}/keys/{id}": ["key.update"],
  "DELETE /v1/projects/{project_id}/keys/{id}": ["key.delete"],
  "POST /v1/projects/{project_id}/keys/{id}:rotate": ["key.rotate"],
};

/** Routes that leave nothing, and why. */
const SILENT: Readonly<Record<string, string>> = {
  "POST /account/providers/{provider}": "leads to the provider; coming back leaves the record",
  "POST /device": "leads to the page that asks",
  "POST /set-up/{token}": "is for nobody once somebody is here",
  "POST /sign-in/{provider}": "leads to the provider; coming back leaves the record",
  "POST /v1/plans:refresh": "asks a provider for its prices",
  "POST /v1/chat/completions": "is a person's own talk",
  "POST /v1/chat/responses": "is a person's own talk",
  "DELETE /v1/chat/sessions/{id}": "is a person's own talk",
  "DELETE /v1/chat/sessions/{id}/turns/{turnId}": "is a person's own talk",
  "PATCH /v1/chat/sessions/{id}": "is a person's own talk",
  "POST /v1/chat/sessions/{id}:regenerate": "is a person's own talk",
  "POST /v1/chat/sessions/{id}:stop": "is a person's own talk",
  "POST /v1/projects/{id}/providers/{name}:check": "changes nothing",
  "POST /v1/nodes/{id}/identity-tokens": "is daemons' own traffic, no deed of anybody's",
  "POST /v1/nodes/{id}/ready": "is daemons' own traffic, no deed of anybody's",
  "POST /v1/oauth/device/code": "asks; the person's answer leaves the record",
  "POST /v1/oauth/revoke": "ends nothing here, since the token is none",
};

interface Row {
  readonly id: string;
  readonly action: string;
  readonly actor_id: string;
  readonly address: string;
  readonly request_id: string;
}

let world: World;
/** Everything that was a secret in a call or in its answer. */
const secrets = new Set([SECRET, PASSWORD]);
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

beforeAll(async () => {
  world = await World.start();
  for (const caller of CALLER_NAMES) {
    const { bearer, cookie } = world.credential(caller);
    for (const secret of [bearer, cookie]) if (secret !== undefined && secret.length > 8) secrets.add(secret);
  }
});
afterAll(async () => {
  agent.destroy();
  await world.close();
});

function rows(): Promise<Row[]> {
  return world.installation.db.selectFrom("audit_event").selectAll().orderBy("id").execute();
}

/** Somebody whom the route lets in. */
function callerFor(access: RouteAccess): Caller {
  return (["owner", ...CALLER_NAMES] as const).find((name) => outcomeFor(access, name) === "yes") ?? "nobody";
}

/** Every long word in what was sent or answered: tokens, keys, links, cookies; ids are shorter. */
function tokensIn(value: unknown): string[] {
  return JSON.stringify(value).match(/[\w.~-]{40,}/g) ?? [];
}

const changing = Object.entries(PLATFORM_ROUTES).filter(([route]) => !route.startsWith("GET "));

describe("the audit log", () => {
  test("has a list of expected records for every route that changes something", () => {
    const known = [...Object.keys(ACTIONS), ...Object.keys(SILENT)];
    expect(known.toSorted()).toEqual(changing.map(([route]) => route).toSorted());
  });

  test.each(changing)("records %s with actor, address and request ID", async (route, access) => {
    const caller = callerFor(access);
    const call = await PLATFORM_CALLS[route]?.(world, caller);
    if (!call) throw new Error(`calls.ts does not know how to call ${route}`);
    const before = new Set((await rows()).map(({ id }) => id));
    const [method = ""] = route.split(" ");
    const answer = await rawCall(agent, {
      url: world.server.platformUrl,
      method,
      path: call.path,
      ...wireOf(world, caller, call),
    });
    const isLetIn = call.letIn?.some((text) => answer.text.includes(text)) === true;
    if (!isLetIn) expect([200, 303, 404], answer.text).toContain(answer.status);
    for (const token of [...tokensIn(answer), ...tokensIn(call)]) secrets.add(token);
    const written = (await rows()).filter(({ id }) => !before.has(id));
    expect(written.map((row) => row.action).toSorted()).toEqual((ACTIONS[route] ?? []).toSorted());
    for (const row of written) {
      expect(row).toMatchObject({ address: "127.0.0.1", request_id: answer.headers["x-request-id"] });
      expect(row.actor_id).not.toBe("");
    }
  });

  test("contains no secret from these calls or from the credentials that made them", async () => {
    const whole = JSON.stringify(await rows());
    expect(secrets.size).toBeGreaterThan(15);
    expect([...secrets].filter((secret) => whole.includes(secret))).toEqual([]);
  });

  test("does not contain a credential that was pasted into a name", async () => {
    const pasted = world.credential("key").bearer ?? "";
    const body = { projectId: world.projectId, planId: "byo", name: `Box ${pasted.slice(0, 60)}` };
    await world.send({ method: "POST", path: "/v1/nodes", body }, z.unknown());
    expect(JSON.stringify(await rows())).not.toContain(pasted.slice(0, 60));
  });
});
