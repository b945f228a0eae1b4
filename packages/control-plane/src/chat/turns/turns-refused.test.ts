import { type CallBilling, NO_BILLING } from "@fairlead/inference/calls/call-money";
import type { ScriptedCall } from "@fairlead/inference/testing/scripted-upstream";
import { DomainError } from "@fairlead/protocol/errors";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { bodyOf, type ChatSetting, ChatStage, saying } from "../chat-stage.fixture.ts";

/** The error table of docs/interface.md §7, status by status. */

let stage: ChatStage;
const open = async (setting: ChatSetting = {}): Promise<void> => {
  stage = new ChatStage();
  await stage.openChat(setting);
};
afterEach(() => stage.closeChat());

const failing = (code: "insufficient_balance" | "not_configured" | "unavailable"): CallBilling => ({
  open: () => Promise.reject(new DomainError(code, "No.")),
});
const answering =
  (status: number, error: object) =>
  (far: ScriptedCall): void => {
    far.respond(status, { "content-type": "application/json", "retry-after": "0" });
    far.write(JSON.stringify({ error }));
    far.end();
  };

const ROUTES = ["/v1/chat/responses", "/v1/chat/completions"];

describe.each(ROUTES)("POST %s", (path) => {
  const ask = async (body: object, asked: Parameters<ChatStage["ask"]>[2] = {}) => {
    const response = await stage.ask(path, body, asked);
    const { error } = (await response.json()) as { error: Record<string, unknown> };
    expect(Object.keys(error)).toEqual(expect.arrayContaining(["message", "type", "code", "param"]));
    expect(response.headers.get("x-request-id")).toMatch(/^req_/);
    return {
      status: response.status,
      session: response.headers.get("service-session-id"),
      headers: response.headers,
      ...error,
    };
  };
  const hi = { messages: [{ role: "user", content: "Hi" }] };

  describe("before anything is stored, returns", () => {
    beforeEach(() => open());

    test("400 without the project header", async () => {
      expect(await ask(hi, { project: null })).toMatchObject({
        status: 400,
        code: "missing_project_header",
        param: "Service-Project-Id",
      });
      expect(await ask(hi, { project: "" })).toMatchObject({ status: 400, code: "missing_project_header" });
    });

    test.each([
      [{}],
      [{ messages: [] }],
      [{ messages: "Hi" }],
      [{ messages: [{ role: "assistant", content: "Hi" }] }],
      [{ messages: [{ role: "user", content: "" }] }],
      [{ messages: ["Hi"] }],
    ])("400 for invalid messages: %j", async (body) => {
      const refused = await ask(body);
      expect(refused).toMatchObject({
        status: 400,
        code: "invalid_request",
        param: expect.stringMatching(/^messages/) as unknown,
      });
      expect(refused.headers.get("x-should-retry")).toBe("false");
    });

    test("400 with `param: n` for several choices, since a session continues with one", async () => {
      for (const n of [2, 0, "2", []]) {
        expect(await ask({ ...hi, n })).toMatchObject({ status: 400, code: "invalid_request", param: "n" });
      }
    });

    test("400 with `param: stream` for a value that is neither true nor false", async () => {
      for (const stream of ["true", 1, {}]) {
        expect(await ask({ ...hi, stream })).toMatchObject({ status: 400, code: "invalid_request", param: "stream" });
      }
    });

    test("400 for a body that is not JSON, or not an object", async () => {
      const init = {
        method: "POST",
        headers: { authorization: "Bearer usr_1", "service-project-id": "prj_1", "content-type": "application/json" },
      };
      for (const body of ["{", "[]", '"x"', "null"]) {
        const response = await fetch(`${stage.platformUrl}${path}`, { ...init, body });
        expect(response.status, body).toBe(400);
      }
    });

    test("400 with `param: model` for an unknown model, and for an invalid name", async () => {
      expect(await ask({ ...hi, model: "no/model" })).toMatchObject({
        status: 400,
        code: "invalid_request",
        param: "model",
      });
      expect(await ask({ ...hi, model: 7 })).toMatchObject({ status: 400, param: "model" });
    });

    test("401 without a session token", async () => {
      expect(await ask(hi, { user: "nobody" })).toMatchObject({ status: 401, code: "invalid_credential" });
    });

    test("403 for users without access to the project, and for viewers", async () => {
      expect(await ask(hi, { user: "usr_3" })).toMatchObject({ status: 403, code: "permission_denied" });
      expect(await ask(hi, { project: "prj_unknown" })).toMatchObject({ status: 403, code: "permission_denied" });
      expect(await ask(hi, { user: "usr_viewer" })).toMatchObject({ status: 403, code: "permission_denied" });
    });

    test("404 for a session that does not exist or belongs to another user", async () => {
      stage.place("a", saying("Hi."));
      const { session } = await stage.say("Hi", { user: "usr_2" });
      for (const named of [session, "ses_unknown", "' or 1=1 --"]) {
        expect(await ask(hi, { session: named })).toMatchObject({ status: 404, code: "session_not_found" });
      }
    });

    test("503 if no model is named and there is no default", async () => {
      stage.defaultModel = null;
      expect(await ask(hi)).toMatchObject({ status: 503, code: "not_configured", param: "model" });
    });

    afterEach(async () => {
      expect(
        await stage.store?.db.selectFrom("chat_turn").select("id").where("user_id", "=", "usr_1").execute(),
      ).toEqual([]);
    });
  });

  test.each([
    [402, "insufficient_balance"],
    [503, "not_configured"],
    [503, "unavailable"],
  ] as const)(
    "returns %s if billing reports %s; the question is stored, and still only once after a retry",
    async (status, code) => {
      let billing = failing(code);
      await open({ host: { billing: { open: (call) => billing.open(call) } } });
      stage.place("a", saying("Paid."));
      const refused = await ask({ ...hi, stream: true });
      expect(refused).toMatchObject({ status, code });
      billing = NO_BILLING;
      const response = await stage.ask(path, { ...hi, stream: true }, { session: refused.session });
      await response.text();
      expect(await stage.history(refused.session)).toEqual(["user: Hi", "assistant: Paid."]);
    },
  );

  test.each([
    ["an upstream that fails", answering(500, { message: "Oops.", code: null }), "upstream_failed"],
    ["an unreachable upstream", (far: ScriptedCall) => far.cut(), "upstream_failed"],
    ["a refused credential", answering(401, { message: "Bad key." }), "upstream_rejected_credentials"],
    ["silence", (far: ScriptedCall) => far.fail(new DomainError("upstream_timeout", "Silent.")), "upstream_timeout"],
    [
      "a missing engine",
      (far: ScriptedCall) => far.fail(new DomainError("no_running_engine", "None.")),
      "no_running_engine",
    ],
  ])("returns 502 for %s", async (_what, play, code) => {
    await open({ host: { limits: { maxAttempts: 1 } } });
    stage.place("a", play);
    for (const stream of [true, false]) {
      const refused = await ask({ ...hi, stream });
      expect(refused).toMatchObject({ status: 502, code });
      expect(refused.session).toMatch(/^ses_/);
    }
  });

  test("returns 400 with the upstream's message if it rejects the call, and 502 for its other errors", async () => {
    await open({ host: { limits: { maxAttempts: 1 } } });
    let error = { message: "Too long.", type: "invalid_request_error", code: "context_length_exceeded", param: null };
    let status = 400;
    stage.place("a", (far) => answering(status, error)(far));
    expect(await ask(hi)).toMatchObject({
      status: 400,
      code: "context_length_exceeded",
      message: "Too long.",
      source: "provider",
    });
    [status, error] = [404, { ...error, message: "No such model.", code: "no_model" }];
    expect(await ask(hi)).toMatchObject({ status: 400, code: "invalid_request", param: "model", source: "provider" });
    [status, error] = [404, { ...error, message: "No such path.", type: "error", code: "" }];
    expect(await ask(hi)).toMatchObject({ status: 502, code: "upstream_failed" });
    [status, error] = [429, { ...error, message: "Slow down." }];
    const limited = await ask(hi);
    expect(limited).toMatchObject({ status: 502, code: "upstream_failed", message: "node:a: Slow down." });
    [status, error] = [529, { ...error, message: "Overloaded." }];
    const overloaded = await ask(hi);
    expect(overloaded).toMatchObject({ status: 502, code: "overloaded", message: "node:a: Overloaded." });
  });

  test("returns 400 for an image that the model does not accept, without spoiling the session", async () => {
    await open();
    let play: (far: ScriptedCall) => void = saying("Hi.");
    const upstream = stage.place("a", (far) => play(far));
    const { session } = await stage.say("Hi");
    play = answering(500, { code: 500, message: "image input is not supported", type: "server_error" });
    const picture = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
    for (let i = 0; i < 2; i++) {
      expect(await ask({ messages: [{ role: "user", content: [picture] }] }, { session })).toMatchObject({
        status: 400,
        code: "unsupported_input",
        message: "image input is not supported",
        source: "provider",
        session,
      });
    }
    play = saying("Yes.");
    expect((await stage.say("Are you there?", { session })).status).toBe(200);
    const { messages } = (await bodyOf(upstream)) as { messages: unknown[] };
    expect(JSON.stringify(messages)).not.toContain("image");
    expect(await stage.history(session)).toEqual([
      "user: Hi",
      "assistant: Hi.",
      "user: Are you there?",
      "assistant: Yes.",
    ]);
  });

  test("names the session in errors of an existing session", async () => {
    await open();
    stage.place("a", saying("Hi."));
    const { session } = await stage.say("Hi");
    expect(await ask({ messages: [] }, { session })).toMatchObject({ status: 400, session });
    expect(await ask({ ...hi, model: "no/model" }, { session })).toMatchObject({ status: 400, session });
  });

  test("returns 409 after too long in the queue; then the caller may retry", async () => {
    await open({ line: { waitMs: 5, places: 1 } });
    stage.place("a");
    const { session } = await stage.say("/new");
    const leaving = new AbortController();
    const first = stage.say("First", { session, signal: leaving.signal }).catch(() => null);
    await expect.poll(() => stage.counters.running).toBe(1);
    const refused = await ask(hi, { session });
    expect(refused).toMatchObject({ status: 409, code: "session_busy", session });
    expect(refused.headers.get("retry-after")).toBe("2");
    expect(refused.headers.get("x-should-retry")).toBeNull();
    leaving.abort();
    await first;
  });

  test("returns 503 if the host is overloaded or shutting down", async () => {
    await open({ host: { limits: { maxCallsInFlight: 0 } } });
    expect(await ask(hi)).toMatchObject({ status: 503, code: "overloaded" });
    await stage.host?.drain(0);
    expect(await ask(hi)).toMatchObject({ status: 503, code: "unavailable" });
  });

  test("returns 204 without a body for OPTIONS, without a credential", async () => {
    await open();
    const response = await fetch(`${stage.platformUrl}${path}`, { method: "OPTIONS" });
    expect(response.status).toBe(204);
    expect(await response.text()).toBe("");
    expect(response.headers.get("access-control-allow-origin")).toBeNull();
  });
});

describe("CORS", () => {
  const origin = "https://chat.example.com";
  const preflight = (from: string, rest: Record<string, string> = {}): Promise<Response> =>
    fetch(`${stage.platformUrl}/v1/chat/responses`, {
      method: "OPTIONS",
      headers: { origin: from, "access-control-request-method": "POST", ...rest },
    });
  beforeEach(() => open({ origins: [origin] }));

  test("lets pages of a configured origin call and read the session name, never with credentials", async () => {
    const asked = await preflight(origin, { "access-control-request-headers": "authorization, x-stainless-os" });
    expect(asked.status).toBe(204);
    expect(asked.headers.get("access-control-allow-origin")).toBe(origin);
    expect(asked.headers.get("access-control-allow-headers")).toBe("authorization, x-stainless-os");
    expect(asked.headers.get("access-control-allow-methods")).toContain("POST");
    stage.place("a", saying("Hi."));
    for (const stream of [true, false]) {
      const told = await stage.say("Hi", { headers: { origin }, body: { stream } });
      expect(told.headers.get("access-control-allow-origin")).toBe(origin);
      expect(told.headers.get("access-control-expose-headers")).toMatch(/service-session-id.*x-request-id/);
      expect(told.headers.get("access-control-allow-credentials")).toBeNull();
      expect(told.headers.get("vary")).toContain("Origin");
    }
  });

  test("lets a page read why it was rejected", async () => {
    const told = await stage.say("Hi", { headers: { origin }, user: "nobody" });
    expect(told.status).toBe(401);
    expect(told.headers.get("access-control-allow-origin")).toBe(origin);
  });

  test.each(["https://evil.example", "https://chat.example.com.evil.example", "null"])(
    "sends no headers for %s",
    async (from) => {
      const asked = await preflight(from);
      expect(asked.status).toBe(204);
      expect(asked.headers.get("access-control-allow-origin")).toBeNull();
      expect(asked.headers.get("vary")).toContain("Origin");
    },
  );

  test("does not repeat an invalid list of header names", async () => {
    const asked = await preflight(origin, { "access-control-request-headers": "a b; c" });
    expect(asked.headers.get("access-control-allow-headers")).not.toContain(";");
  });
});
