import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { projectKeySchema, projectSchema } from "@fairlead/protocol/resources";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { openNewAdmin } from "../../installation/admin/new-installation.fixture.ts";
import { type Config, loadConfig } from "../../installation/config/config.ts";
import { openLocalOperations } from "../../installation/operations/local-operations.ts";
import type { RunningServer } from "../../server.ts";
import { startServer } from "../../server.ts";
import type { WhoisReport } from "./key-whois-service.ts";

const madeSchema = z.object({ key: projectKeySchema.required({ keyValue: true }) });
type Made = z.infer<typeof madeSchema>["key"];

/** By a running server, as an operator asks: the store is read beside it. */
describe("whois", () => {
  const dir = mkdtempSync(join(tmpdir(), "fairlead-whois-"));
  let config: Config;
  let server: RunningServer;
  let token: string;
  let keys: string;

  beforeAll(async () => {
    const ports = { FAIRLEAD_SERVER_PLATFORM_PORT: "0", FAIRLEAD_SERVER_INFERENCE_PORT: "0" };
    config = loadConfig({ env: { ...ports, FAIRLEAD_DATA_DIR: join(dir, "data"), FAIRLEAD_LOG_LEVEL: "silent" } });
    const admin = await openNewAdmin(config);
    await admin.createUser({ email: "ann@example.org", name: "Ann", platformAdmin: false });
    ({ token } = await admin.createToken({ email: "ann@example.org" }));
    await admin.close();
    server = await startServer(config);
    const { project } = z
      .object({ project: projectSchema })
      .parse(await api("POST", "/v1/projects", { name: "Research" }));
    keys = `/v1/projects/${project.id}/keys`;
  });
  afterAll(async () => {
    await server.close();
    rmSync(dir, { recursive: true });
  });

  async function api(method: string, path: string, body?: object): Promise<unknown> {
    const headers = { authorization: `Bearer ${token}`, ...(body ? { "content-type": "application/json" } : {}) };
    const response = await fetch(server.platformUrl + path, {
      method,
      headers,
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    expect(response.ok).toBe(true);
    return response.json();
  }
  const make = async (name: string): Promise<Made> => madeSchema.parse(await api("POST", keys, { name })).key;
  const whois = (text: string): Promise<WhoisReport> => openLocalOperations(config).whoisKey({ text });

  test("identifies a valid key by its public part and by its value", async () => {
    const { id, keyId, keyValue } = await make("laptop");
    const good = { publicId: keyId, state: "good", key: { id, name: "laptop" } };
    expect(await whois(keyId)).toMatchObject(good);
    expect(await whois(`${keyValue}\n`)).toMatchObject(good);
  });

  test("reports who disabled a key, and when", async () => {
    const { id, keyId } = await make("ci");
    await api("PATCH", `${keys}/${id}`, { enabled: false });
    expect(await whois(keyId)).toMatchObject({
      state: "disabled",
      by: "ann@example.org",
      since: expect.stringMatching(/Z$/),
    });
  });

  test("reports who deleted a key, and when, from the audit log", async () => {
    const { id, keyId, keyValue } = await make("gone");
    await api("DELETE", `${keys}/${id}`);
    const deleted = {
      state: "deleted",
      by: "ann@example.org",
      since: expect.stringMatching(/Z$/),
      key: { id, name: "gone" },
    };
    expect(await whois(keyId)).toMatchObject(deleted);
    expect(await whois(keyValue)).toMatchObject(deleted);
  });

  test("reports when a key expired", async () => {
    const expiresAt = new Date(Date.now() + 1500).toISOString();
    const { key } = madeSchema.parse(await api("POST", keys, { name: "short", expiresAt }));
    await expect.poll(() => whois(key.keyId)).toMatchObject({ state: "expired", since: expiresAt });
  });

  test("identifies a value that a rotation replaced, during the overlap and after it", async () => {
    const { id, keyId: first, keyValue } = await make("rotated");
    await api("POST", `${keys}/${id}:rotate`, { overlapSeconds: 60 });
    expect(await whois(first)).toMatchObject({ state: "good", key: { id } });
    await api("POST", `${keys}/${id}:rotate`, { overlapSeconds: 0 });
    expect(await whois(first)).toMatchObject({ state: "replaced", by: "ann@example.org", key: { id } });
    expect(await whois(keyValue)).toMatchObject({ state: "replaced" });
  });

  test("does not know a foreign key, and rejects text that is not a key without repeating it", async () => {
    expect(await whois("0123456789abcdef")).toMatchObject({ state: "unknown", key: null });
    for (const text of ["", "sk-secret", "flk_0123456789abcdef_cut", "%%%%%%%%%%%%%%%%"]) {
      const failure = await whois(text).catch((error: unknown) => error);
      expect(failure).toMatchObject({
        code: "invalid_request",
        message: expect.stringContaining("neither a complete"),
      });
      if (text !== "") expect(String(failure)).not.toContain(text);
    }
  });
});
