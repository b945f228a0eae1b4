import { Agent } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import type { AuditAction } from "../../packages/control-plane/src/audit/audit.ts";
import {
  CALLER_NAMES,
  type Caller,
  outcomeFor,
  PLATFORM_ROUTES,
  type RouteAccess,
} from "../../packages/control-plane/src/auth/route-access.ts";
import { rawCall } from "../support/raw-http.ts";
import { PLATFORM_CALLS, SECRET } from "./calls.ts";
import { World } from "./world.ts";

/** What each route that changes something leaves in the audit log; null: daemons' own traffic, which is no deed of anybody's. */
const ACTIONS: Readonly<Record<string, AuditAction | null>> = {
  "POST /v1/nodes": "node.create",
  "PATCH /v1/nodes/{id}": "node.update",
  "DELETE /v1/nodes/{id}": "node.delete",
  "POST /v1/nodes/{id}/bootstrap-tokens": "node.bootstrap",
  "POST /v1/nodes/{id}/enroll": "node.enroll",
  "POST /v1/nodes/{id}/identity-tokens": null,
  "POST /v1/nodes/{id}/ready": null,
  "DELETE /v1/nodes/{node_id}/secrets/{name}": "node.secret.delete",
  "PUT /v1/nodes/{node_id}/secrets/{name}": "node.secret.put",
  "POST /v1/projects": "project.create",
  "POST /v1/projects/{project_id}/keys": "key.create",
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
const secrets = new Set([SECRET]);
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
  const caller = (["owner", ...CALLER_NAMES] as const).find((name) => outcomeFor(access, name) === "yes");
  if (!caller) throw new Error("the route lets nobody in");
  return caller;
}

/** Every text in a JSON value that is long and without a space: tokens, keys, links; ids too, which are no secret. */
function tokensIn(value: unknown): string[] {
  if (typeof value === "string") return /^\S{60,}$/.test(value) ? [value] : [];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(tokensIn) : [];
}

const changing = Object.entries(PLATFORM_ROUTES).filter(([route]) => !route.startsWith("GET "));

describe("the audit log", () => {
  test("knows what every route that changes something leaves in it", () => {
    expect(Object.keys(ACTIONS).toSorted()).toEqual(changing.map(([route]) => route).toSorted());
  });

  test.each(changing)("%s leaves its record, with who, from where and by which request", async (route, access) => {
    const caller = callerFor(access);
    const call = await PLATFORM_CALLS[route]?.(world, caller);
    if (!call) throw new Error(`calls.ts does not know how to call ${route}`);
    const before = new Set((await rows()).map(({ id }) => id));
    const [method = ""] = route.split(" ");
    const answer = await rawCall(agent, {
      url: world.server.platformUrl,
      method,
      path: call.path,
      headers: {
        authorization: `Bearer ${call.bearer ?? world.credential(caller).bearer}`,
        "content-type": "application/json",
      },
      body: call.body === undefined ? undefined : JSON.stringify(call.body),
    });
    expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 200 });
    for (const token of [...tokensIn(JSON.parse(answer.text)), ...tokensIn(call)]) secrets.add(token);
    const written = (await rows()).filter(({ id }) => !before.has(id));
    const action = ACTIONS[route] ?? null;
    expect(written.map((row) => row.action)).toEqual(action === null ? [] : [action]);
    for (const row of written) {
      expect(row).toMatchObject({ address: "127.0.0.1", request_id: answer.headers["x-request-id"] });
      expect(row.actor_id).not.toBe("");
    }
  });

  test("holds no secret of any of these calls, nor of the credentials that made them", async () => {
    const whole = JSON.stringify(await rows());
    expect(secrets.size).toBeGreaterThan(15);
    expect([...secrets].filter((secret) => whole.includes(secret))).toEqual([]);
  });

  test("keeps no credential that somebody pasted into a name", async () => {
    const pasted = world.credential("key").bearer ?? "";
    const body = { projectId: world.projectId, planId: "byo", name: `Box ${pasted.slice(0, 60)}` };
    await world.send({ method: "POST", path: "/v1/nodes", body }, z.unknown());
    expect(JSON.stringify(await rows())).not.toContain(pasted.slice(0, 60));
  });
});
