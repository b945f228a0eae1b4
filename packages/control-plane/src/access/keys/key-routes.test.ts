import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { projectKeySchema } from "@fairlead/protocol/resources";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { openLocalAdmin } from "../../installation/admin/local-admin.ts";
import { type Config, loadConfig } from "../../installation/config/config.ts";
import { type RunningServer, startServer } from "../../server.ts";

const withKey = z.object({ key: projectKeySchema.required({ keyValue: true }) });
const withError = z.object({
  error: z.object({ code: z.string(), param: z.string().nullable(), message: z.string() }),
});
const listed = z.object({ keys: z.array(projectKeySchema), nextPageToken: z.string() });

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

describe("the project key routes", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "fairlead-keys-"));
  let config: Config;
  let server: RunningServer;
  let token: string;
  let keysPath: string;

  const tokenFor = async (email: string): Promise<string> => {
    const admin = await openLocalAdmin(config);
    await admin.createUser({ email, name: email, platformAdmin: false });
    const made = await admin.createToken({ email });
    await admin.close();
    return made.token;
  };
  /** @param route such as `GET /v1/projects`. */
  const call = async (route: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> => {
    const [method = "", path = ""] = route.split(" ");
    const response = await fetch(`${server.platformUrl}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: await response.json() };
  };
  const create = async (body: object = {}): Promise<z.infer<typeof withKey>["key"]> => {
    const answer = await call(`POST ${keysPath}`, { name: "mine", ...body });
    expect(answer.status).toBe(200);
    return withKey.parse(answer.body).key;
  };
  const useKey = async (value: string): Promise<number> => {
    const headers = { authorization: `Bearer ${value}` };
    const response = await fetch(`${server.inferenceUrl}/v1/models`, { headers });
    await response.arrayBuffer();
    return response.status;
  };

  beforeAll(async () => {
    config = loadConfig({
      env: {
        FAIRLEAD_DATA_DIR: dataDir,
        FAIRLEAD_SERVER_PLATFORM_PORT: "0",
        FAIRLEAD_SERVER_INFERENCE_PORT: "0",
        FAIRLEAD_LOG_LEVEL: "silent",
      },
    });
    server = await startServer(config);
    token = await tokenFor("ann@example.org");
    const { body } = await call("POST /v1/projects", { name: "one" });
    keysPath = `/v1/projects/${z.object({ project: z.object({ id: z.string() }) }).parse(body).project.id}/keys`;
  });
  afterAll(async () => {
    await server.close();
    rmSync(dataDir, { recursive: true });
  });

  test("create a key as the interface defines, and return its value only once", async () => {
    const { keyValue, ...key } = await create();
    expect(keyValue).toMatch(/^flk_/);
    expect(key).toMatchObject({ name: "mine", enabled: true, expiresAt: null, lastUsedAt: null, previousSecret: null });
    expect(key.limits.modelAllowList).toBeNull();
    expect(await call(`GET ${keysPath}/${key.id}`)).toEqual({ status: 200, body: key });
    const { keys } = listed.parse((await call(`GET ${keysPath}`)).body);
    expect(keys).toContainEqual(key);
    expect(await useKey(keyValue)).toBe(200);
  });

  test("list keys page by page, and filter them by creator", async () => {
    for (let n = 0; n < 2; n++) await create();
    const first = listed.parse((await call(`GET ${keysPath}?pageSize=1`)).body);
    expect(first.keys).toHaveLength(1);
    const second = listed.parse((await call(`GET ${keysPath}?pageSize=1&pageToken=${first.nextPageToken}`)).body);
    expect(second.keys[0]?.id).not.toBe(first.keys[0]?.id);
    const userId = first.keys[0]?.userId ?? "";
    const own = listed.parse((await call(`GET ${keysPath}?userId=${userId}`)).body);
    expect(own.keys.length).toBeGreaterThan(1);
    expect(await call(`GET ${keysPath}?userId=usr_nobody`)).toEqual({
      status: 200,
      body: { keys: [], nextPageToken: "" },
    });
  });

  test("apply a change on the inference host immediately, and change only the given fields", async () => {
    const { id, keyValue, ...rest } = await create({ limits: { parallelCalls: 2, budget: { daily: 5 } } });
    const changed = await call(`PATCH ${keysPath}/${id}`, { enabled: false, limits: { budget: { total: 9 } } });
    expect(changed).toEqual({
      status: 200,
      body: {
        ...rest,
        id,
        enabled: false,
        limits: { ...rest.limits, budget: { total: 9, daily: 5, monthly: null } },
      },
    });
    expect(await useKey(keyValue)).toBe(401);
    await call(`PATCH ${keysPath}/${id}`, { enabled: true });
    expect(await useKey(keyValue)).toBe(200);
  });

  test("return a new value once per rotation; both values work, or only the new one without overlap", async () => {
    const made = await create();
    const path = `${keysPath}/${made.id}:rotate`;
    const first = withKey.parse((await call(`POST ${path}`)).body).key;
    expect(first).toMatchObject({ id: made.id, previousSecret: { keyId: made.keyId } });
    const overlapMs = Date.parse(first.previousSecret?.expiresAt ?? "") - Date.now();
    expect(Math.round(overlapMs / 3_600_000)).toBe(24);
    expect([await useKey(made.keyValue), await useKey(first.keyValue)]).toEqual([200, 200]);
    const second = withKey.parse((await call(`POST ${path}`, { overlapSeconds: 0 })).body).key;
    expect(second.previousSecret).toBeNull();
    const values = [made, first, second].map(({ keyValue }) => keyValue);
    expect(await Promise.all(values.map(useKey))).toEqual([401, 401, 200]);
  });

  test("do not repeat a rotation with the same Idempotency-Key, and reject that header for another key", async () => {
    const [made, other] = [await create(), await create()];
    const headers = { "idempotency-key": "rotate-once" };
    const rotate = (id: string): Promise<Answer> => call(`POST ${keysPath}/${id}:rotate`, {}, headers);
    const { keyValue } = withKey.parse((await rotate(made.id)).body).key;
    const again = await rotate(made.id);
    expect(again.status).toBe(409);
    expect(withError.parse(again.body).error).toMatchObject({ code: "already_exists" });
    expect(JSON.stringify(again.body)).not.toContain("flk_");
    expect(withError.parse((await rotate(other.id)).body).error.code).toBe("idempotency_mismatch");
    expect([await useKey(keyValue), await useKey(other.keyValue)]).toEqual([200, 200]);
  });

  test("delete a key on both hosts", async () => {
    const { id, keyValue } = await create();
    expect(await useKey(keyValue)).toBe(200);
    expect(await call(`DELETE ${keysPath}/${id}`)).toEqual({ status: 200, body: {} });
    expect(await useKey(keyValue)).toBe(401);
    for (const method of ["GET", "DELETE"]) expect((await call(`${method} ${keysPath}/${id}`)).status).toBe(404);
    expect((await call(`POST ${keysPath}/${id}:rotate`, {})).status).toBe(404);
  });

  test.each([
    ["POST", "", { name: "x", limit: {} }, "limit"],
    ["POST", "", { name: "x", limits: { requestPerMinute: 1 } }, "limits.requestPerMinute"],
    ["POST", "", { name: "x", models: ["a/b"] }, "models"],
    ["POST", "", { name: "x", projectId: "prj_other" }, "projectId"],
    ["POST", "", { name: "x".repeat(10_000) }, "name"],
    ["POST", "", { name: "x", expiresAt: "2020-01-01T00:00:00Z" }, "expiresAt"],
    ["POST", "", { name: "x", expiresAt: "tomorrow" }, "expiresAt"],
    ["PATCH", "/KEY", { limits: { modelAllowList: ["*"] } }, "limits.modelAllowList[0]"],
    ["PATCH", "/KEY", { limits: { budget: { daily: 2 ** 53 + 2 } } }, "limits.budget.daily"],
    ["PATCH", "/KEY", { limits: null }, "limits"],
    ["PATCH", "/KEY", { enabled: "no" }, "enabled"],
    ["PATCH", "/KEY", { keyValue: "flk_x" }, "keyValue"],
    ["POST", "/KEY:rotate", { overlapSeconds: 30 * 24 * 3600 + 1 }, "overlapSeconds"],
    ["POST", "/KEY:rotate", { overlap: 1 }, "overlap"],
  ])("return 400 for %s …%s with %j, naming the field", async (...[method, path, body, param]) => {
    const { id } = await create();
    const answer = await call(`${method} ${keysPath}${path.replace("KEY", id)}`, body);
    expect(answer.status).toBe(400);
    expect(withError.parse(answer.body).error).toMatchObject({ code: "invalid_request", param });
  });

  test.each([
    "'; drop table project_key; --",
    "<script>alert(1)</script>",
    "ключ „🔑“ \u202e",
    "a:b",
    "%00",
    "x".repeat(200),
  ])("accept %j as a name, and return 404 or 400 for it as an ID", async (text) => {
    const name = text.slice(0, 80);
    expect((await create({ name })).name).toBe(name);
    const { status } = await call(`GET ${keysPath}/${encodeURIComponent(text)}`);
    expect([400, 404]).toContain(status);
  });

  test("reject a session immediately after it ends, even if it was just used", async () => {
    const elsewhere = token;
    token = await tokenFor("bea@example.org");
    const sessions = z.object({ sessions: z.array(z.object({ id: z.string(), current: z.boolean() })) });
    const { body } = await call("GET /v1/me/sessions");
    const current = sessions.parse(body).sessions.find((session) => session.current);
    expect((await call(`DELETE /v1/me/sessions/${current?.id}`)).status).toBe(200);
    expect((await call("GET /v1/me")).status).toBe(401);
    token = elsewhere;
    expect((await call("GET /v1/me")).status).toBe(200);
  });
});
