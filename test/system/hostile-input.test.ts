import { Agent } from "node:http";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { STORES } from "../../packages/control-plane/src/testing.fixture.ts";
import { mistakesOf, type Target, targetsOf, withTexts } from "../support/api-targets.ts";
import { type RawAnswer, rawCall } from "../support/raw-http.ts";
import { startTwoTenants, type Tenant, type TwoTenants } from "../support/two-tenants.ts";

/** Every route of the API document against what no client should send: a clear refusal, never a fault of ours, nobody else's data. */

const errorAnswer = z.object({
  error: z.strictObject({
    message: z.string().min(1),
    type: z.string(),
    code: z.string(),
    param: z.string().nullable(),
    source: z.enum(["fairlead", "provider"]),
    requestId: z.string(),
    errors: z
      .array(z.strictObject({ param: z.string(), message: z.string().min(1) }))
      .min(1)
      .max(50)
      .optional(),
  }),
});
type ErrorAnswer = z.output<typeof errorAnswer>["error"];

const SEED = 20_260_301;
const RUNS = 3000;
const DEEP = 100_000;
const MEGABYTE = 1024 * 1024;

const BODIES: readonly (string | Buffer)[] = [
  "",
  "{",
  "null",
  "[]",
  '"x"',
  "1e999",
  "\ufeff{}",
  "\0",
  '{"name":"x"}}',
  '{"__proto__":{"x":1}}',
  '{"constructor":{"prototype":{"x":1}}}',
  '{"name":"\\u0000","projectId":"\\u0000","planId":"\\u0000","value":"\\u0000","id":"\\u0000","assertion":"\\u0000"}',
  '{"name":"\\ud800","projectId":"\\udfff","planId":"byo","value":"\\ud800"}',
  `{"name":${"[".repeat(DEEP)}${"]".repeat(DEEP)}}`,
  `{"node":{"connectors":${"[".repeat(DEEP)}${"]".repeat(DEEP)}}}`,
  `{"node":${'{"a":'.repeat(DEEP)}1${"}".repeat(DEEP)}}`,
  "[".repeat(DEEP),
  JSON.stringify({ name: "x".repeat(200_000), value: "x".repeat(200_000) }),
  JSON.stringify("x".repeat(MEGABYTE + 1)),
  Buffer.concat([Buffer.from('{"name":"'), Buffer.from([0xc3, 0x28, 0xff, 0xfe]), Buffer.from('"}')]),
  Buffer.from([0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]),
];
const PATH_PARTS = ["..", ".", "%2e%2e", "%2F", "a%2Fb", "..%2F..%2Fetc%2Fpasswd", "%00", "a%00b", "%0a", "%", "%ff"];
const MORE_PATH_PARTS = ["%C3%28", "%F0%9F%92%A9", "'--", "x".repeat(300), "nod_x:drain", "nod_x%3Adrain", "*", "null"];
const MEDIA_TYPES = [
  "application/json",
  "application/json; charset=utf-16",
  "text/plain",
  "multipart/form-data",
  "",
  "x",
];
const KEYS = ["", "x", "x".repeat(256), "ü", "a\tb"];

/** Its errors have the form of RFC 6749 §5.2. */
const isOAuth = ({ path }: Target): boolean => path.startsWith("/v1/oauth/");
const oauthAnswer = z.object({ error: z.string(), error_description: z.string().min(1) });

describe.each(STORES)("hostile input on $name", (store) => {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  let tenants: TwoTenants;
  let targets: Target[];
  let ann: Tenant;
  let bob: Tenant;

  beforeAll(async () => {
    tenants = await startTwoTenants(store);
    ({ ann, bob } = tenants);
    const response = await fetch(`${tenants.server.platformUrl}/openapi.json`);
    targets = targetsOf(await response.json());
    expect(targets.length).toBeGreaterThan(20);
  });
  afterAll(async () => {
    agent.destroy();
    await tenants.close();
  });

  const credentialFor = ({ security }: Target): string | undefined => {
    const tokens: Readonly<Record<string, string>> = {
      sessionToken: ann.token,
      nodeIdentityToken: ann.identityToken,
      bootstrapToken: ann.bootstrapToken,
      projectKey: ann.keyValue,
    };
    return tokens[security[0] ?? ""];
  };

  /** Ann's own things where the path has a parameter; `id` is a node's but for projects. */
  const ownPath = (target: Target): string =>
    target.path
      .replace("/projects/{id}", `/projects/${ann.projectId}`)
      .replace("{project_id}", ann.projectId)
      .replace(/\{(id|node_id)\}/, ann.nodeId)
      .replace("{slug}", ann.identifier)
      .replace(/(aliases|providers)\/\{name\}/, "$1/none")
      .replace("{name}", "TOKEN")
      .replace("{model}", `${ann.identifier}/model`);

  interface Call {
    readonly path: string;
    readonly authorization?: string | undefined;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string | Buffer | undefined;
  }

  /** Sends the call and holds what must be true of every answer. @returns the refusal, if it is one. */
  async function attack(target: Target, call: Call): Promise<{ answer: RawAnswer; error: ErrorAnswer | null }> {
    const url = target.host === "platform" ? tenants.server.platformUrl : tenants.server.inferenceUrl;
    const headers = {
      ...(call.authorization === undefined ? {} : { authorization: call.authorization }),
      ...(call.body === undefined ? {} : { "content-type": "application/json" }),
      ...(target.path.startsWith("/v1/chat/") ? { "service-project-id": ann.projectId } : {}),
      ...call.headers,
    };
    const answer = await rawCall(agent, { url, method: target.method, path: call.path, headers, body: call.body });
    const what = `${target.name} ${call.path.slice(0, 200)} → ${answer.status} ${answer.text.slice(0, 500)}`;
    expect(answer.headers["x-request-id"], what).toMatch(/^req_/);
    const sent = `${call.path}${String(call.body)}`;
    for (const mark of bob.marks) if (!sent.includes(mark)) expect(answer.text, what).not.toContain(mark);
    if (answer.status < 400) return { answer, error: null };
    expect(answer.headers["content-type"], what).toBe("application/json; charset=utf-8");
    const told: unknown = JSON.parse(answer.text);
    if (isOAuth(target) && oauthAnswer.safeParse(told).success) {
      expect(answer.status, what).toBeLessThan(500);
      return { answer, error: null };
    }
    const { error } = errorAnswer.parse(told);
    expect(error.requestId, what).toBe(answer.headers["x-request-id"]);
    // No engine runs here, nor a daemon, and that is the one thing that may be missing.
    const missing = target.path.endsWith("/logs") ? "unavailable" : "no_running_engine";
    if (answer.status >= 500) expect(error.code, what).toBe(missing);
    return { answer, error };
  }

  const bearer = (token: string | undefined): string | undefined => token && `Bearer ${token}`;

  test("with any single mistake in a body returns 400 and names the field", async () => {
    let made = 0;
    // An answer can be made again where there is a session with one; nobody chats here.
    const checked = targets.filter(({ path }) => !path.endsWith(":regenerate"));
    for (const target of checked.filter(({ host, body }) => host === "platform" && body !== null)) {
      for (const { what, param, body } of target.body === null ? [] : mistakesOf(target.body)) {
        const { error, answer } = await attack(target, {
          path: ownPath(target),
          authorization: bearer(credentialFor(target)),
          body: JSON.stringify(body),
        });
        expect([answer.status, error?.param], `${target.name}: ${what} ${param}`).toEqual([400, param || "body"]);
        made += 1;
      }
    }
    expect(made).toBeGreaterThan(100);
  });

  test("with any text in a body never causes an internal error", async () => {
    const texts = ["\0", "a\0b", "\ud800", "\u202e", "'; drop table node; --", "%s%n", "../../x", "x".repeat(70_000)];
    for (const target of targets) {
      for (const { body } of target.body === null ? [] : withTexts(target.body, texts)) {
        await attack(target, {
          path: ownPath(target),
          authorization: bearer(credentialFor(target)),
          body: JSON.stringify(body),
        });
      }
    }
  });

  test("with a body over the limit returns 413 for every caller", async () => {
    // Turns of chats take as much as the inference host.
    const limited = targets.filter(({ path }) => !/^\/v1\/chat\/(completions|responses)$|:regenerate$/.test(path));
    for (const target of limited.filter(({ host, body }) => host === "platform" && body !== null)) {
      const body = JSON.stringify("x".repeat(MEGABYTE));
      const authorization = bearer(credentialFor(target));
      const { answer } = await attack(target, { path: ownPath(target), authorization, body });
      expect(answer.status, target.name).toBe(413);
    }
  });

  test("with an unknown, repeated or mistyped query parameter returns 400 and names it", async () => {
    // What an OAuth client sends beyond the standard is passed over (RFC 6749 §3.1).
    for (const target of targets.filter((one) => one.query.length > 0 && !isOAuth(one))) {
      for (const name of target.query) {
        const authorization = bearer(credentialFor(target));
        const own = name === "projectId" ? "" : `projectId=${ann.projectId}&`;
        const query = target.query.includes("projectId") ? own : "";
        const twice = await attack(target, { path: `${ownPath(target)}?${query}${name}=1&${name}=2`, authorization });
        expect([twice.answer.status, twice.error?.param], target.name).toEqual([400, name]);
      }
    }
  });

  test("in path, query, headers and body gets a well-formed response without other tenants' data", async () => {
    const credentials = [
      undefined,
      "",
      "Bearer",
      "Bearer ",
      "Basic YW5uOng=",
      "bearer x",
      `Bearer ${ann.token}x`,
      "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJ1c3JfMSIsImF1ZCI6InBsYXRmb3JtIn0.",
      ...[ann.token, ann.token, ann.token, ann.identityToken, ann.bootstrapToken, ann.keyValue].map(bearer),
    ];
    const foreign = [bob.projectId, bob.nodeId, bob.identifier, `${bob.identifier}%2Fmodel`];
    const part = fc.oneof(
      fc.constantFrom(...PATH_PARTS, ...MORE_PATH_PARTS, ...foreign),
      fc.string({ unit: "binary" }).map((text) => encodeURIComponent(text.toWellFormed())),
    );
    const hostile = fc.record({
      target: fc.constantFrom(...targets),
      authorization: fc.constantFrom(...credentials),
      parts: fc.array(part, { minLength: 1, maxLength: 2 }),
      own: fc.boolean(),
      query: fc.oneof(fc.constant(""), fc.tuple(fc.constantFrom("projectId", "pageSize", "pageToken", "zz"), part)),
      body: fc.oneof(fc.constantFrom(...BODIES), fc.json(), fc.constant(null)),
      mutation: fc.tuple(fc.nat(), fc.jsonValue()),
      mutate: fc.boolean(),
      mediaType: fc.constantFrom(...MEDIA_TYPES),
      key: fc.option(fc.constantFrom(...KEYS), { nil: undefined }),
    });
    const seen = new Set<number>();
    await fc.assert(
      fc.asyncProperty(hostile, async ({ target, authorization, parts, ...rest }) => {
        let at = 0;
        const filled = target.path.replaceAll(/\{\w+\}/g, () => parts[at++ % parts.length] ?? "");
        // Her own node stays, so that the other calls meet one.
        const path = rest.own && target.method !== "DELETE" ? ownPath(target) : filled;
        const query = typeof rest.query === "string" ? "" : `?${rest.query[0]}=${rest.query[1]}`;
        const body = rest.mutate && target.body ? mutated(target.body.sample, rest.mutation) : (rest.body ?? undefined);
        const { answer } = await attack(target, {
          path: `${path}${query}`,
          authorization,
          body: target.method === "GET" ? undefined : body,
          headers: {
            ...(body === undefined || rest.mediaType === "application/json" ? {} : { "content-type": rest.mediaType }),
            ...(rest.key === undefined ? {} : { "idempotency-key": rest.key }),
          },
        });
        seen.add(answer.status);
      }),
      { seed: SEED, numRuns: RUNS, endOnFailure: true },
    );
    // All of the ways to refuse were met, and not one at the door for all.
    for (const status of [200, 400, 401, 404, 415]) expect([...seen]).toContain(status);
  });

  test("cannot tell other tenants' resources from ones that do not exist", async () => {
    const unknown = { node: "nod_01kc3b6q2v8r5x0m7n4t9w1yzz", project: "prj_01kc3b6q2v8r5x0m7n4t9w1yzz" };
    for (const target of targets.filter(({ path, host }) => path.includes("{") && host === "platform")) {
      const swap = (text: string, node: string, project: string): string =>
        text.replaceAll(ann.nodeId, node).replaceAll(ann.projectId, project).replaceAll(ann.identifier, node);
      const call = async (node: string, project: string): Promise<unknown> => {
        const projectQuery = target.query.includes("projectId") ? `?projectId=${project}` : "";
        const { answer, error } = await attack(target, {
          path: swap(ownPath(target), node, project) + projectQuery,
          authorization: bearer(credentialFor(target)),
          body: target.body ? swap(JSON.stringify(target.body.sample), node, project) : undefined,
        });
        return { status: answer.status, error: { ...error, requestId: "" } };
      };
      const theirs = await call(bob.nodeId, bob.projectId);
      expect(theirs, target.name).toEqual(await call(unknown.node, unknown.project));
      expect(theirs, target.name).not.toMatchObject({ status: 200 });
    }
  });

  test("leaves all of the other tenant's resources in place and unchanged", async () => {
    const headers = { authorization: `Bearer ${bob.token}` };
    const list = await fetch(`${tenants.server.platformUrl}/v1/nodes?projectId=${bob.projectId}`, { headers });
    expect(await list.json()).toMatchObject({ nodes: [{ id: bob.nodeId, name: "bob-box" }] });
    const secrets = await fetch(`${tenants.server.platformUrl}/v1/nodes/${bob.nodeId}/secrets`, { headers });
    expect(await secrets.json()).toMatchObject({ secrets: [{ name: "bob_SECRET" }] });
  });
});

/** The sample with one of its fields replaced. */
function mutated(sample: unknown, [index, value]: readonly [number, unknown]): string {
  if (typeof sample !== "object" || sample === null) return JSON.stringify(value);
  const names = Object.keys(sample);
  const name = names[index % Math.max(1, names.length)] ?? "x";
  return JSON.stringify({ ...sample, [name]: value });
}
