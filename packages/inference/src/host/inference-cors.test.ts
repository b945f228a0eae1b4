import { DomainError } from "@fairlead/protocol/errors";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { chunk, DONE, JSON_TYPE, SSE } from "../relay/call-relay.fixture.ts";
import { ANSWER, CHAT, HostStage } from "./host-stage.fixture.ts";

const ORIGIN = "https://chat.example.com";
// What openai 7 sends from a page.
const ASKED = "authorization,content-type,x-stainless-arch,x-stainless-lang,x-stainless-os,x-stainless-retry-count";

let stage: HostStage;
beforeEach(() => {
  stage = new HostStage();
});
afterEach(() => stage.close());

const preflight = (
  origin: string,
  { path = "/v1/chat/completions", asked = ASKED }: { readonly path?: string; readonly asked?: string } = {},
): Promise<Response> =>
  fetch(`${stage.url}${path}`, {
    method: "OPTIONS",
    headers: { origin, "access-control-request-method": "POST", "access-control-request-headers": asked },
  });

const allowed = (response: Response): string | null => response.headers.get("access-control-allow-origin");

describe("a web page of an allowed origin", () => {
  beforeEach(() => stage.open({ allowedOrigins: ["https://other.example.com", ORIGIN] }));

  test.each([
    ["/v1/chat/completions", "POST"],
    ["/v1/responses", "POST"],
    ["/v1/models", "GET, HEAD"],
    ["/v1/models/a/b", "GET, HEAD"],
  ])("can send a preflight request for %s without a key", async (path, methods) => {
    const answered = await preflight(ORIGIN, { path });
    expect(answered.status).toBe(204);
    expect(await answered.text()).toBe("");
    expect(Object.fromEntries(answered.headers)).toMatchObject({
      "access-control-allow-origin": ORIGIN,
      "access-control-allow-methods": methods,
      "access-control-allow-headers": ASKED,
      "access-control-max-age": "600",
      vary: "Origin",
    });
    expect(answered.headers.get("access-control-allow-credentials")).toBeNull();
  });

  test.each(["", "x y", "a".repeat(3000)])("gets the SDK headers as allowed if it requests `%.10s`", async (asked) => {
    const names = (await preflight(ORIGIN, { asked })).headers.get("access-control-allow-headers");
    for (const name of ["authorization", "content-type", "idempotency-key", "x-stainless-retry-count"]) {
      expect(names).toContain(name);
    }
  });

  test("can read complete and streamed responses and their headers", async () => {
    stage.place("box", (far) => {
      far.respond(200, stream ? SSE : JSON_TYPE);
      far.write(stream ? chunk("Hi") + DONE : JSON.stringify(ANSWER));
      far.end();
    });
    let stream = false;
    for (stream of [false, true]) {
      const answered = await stage.chat({ ...CHAT, stream }, { headers: { origin: ORIGIN } });
      expect(answered.status).toBe(200);
      expect(allowed(answered)).toBe(ORIGIN);
      expect(answered.headers.get("vary")).toBe("Origin");
      const exposed = answered.headers.get("access-control-expose-headers");
      for (const name of [
        "x-request-id",
        "retry-after",
        "x-ratelimit-remaining-requests",
        "x-ratelimit-limit-tokens",
      ]) {
        expect(exposed).toContain(name);
      }
      await answered.text();
    }
  });

  test("can read errors of the host, of upstreams, and for unknown paths and methods", async () => {
    stage.place("box", (far) => far.respond(500, { "content-type": "text/html" }));
    const headers = { origin: ORIGIN };
    const errors = [
      await stage.chat(CHAT, { headers }),
      await stage.chat([], { headers }),
      await fetch(`${stage.url}/v1/nothing`, { headers }),
      await fetch(`${stage.url}/v1/responses`, { headers }),
      await fetch(`${stage.url}/v1/nothing`, { method: "OPTIONS", headers }),
    ];
    expect(errors.map(({ status }) => status)).toEqual([502, 400, 404, 405, 404]);
    for (const error of errors) {
      expect([allowed(error), error.headers.get("vary")]).toEqual([ORIGIN, "Origin"]);
    }
  });

  test.each(["https://evil.example", `${ORIGIN}.evil.example`, "http://chat.example.com", "null"])(
    "is not one from %s",
    async (origin) => {
      for (const answered of [await preflight(origin), await stage.chat(CHAT, { headers: { origin } })]) {
        expect([allowed(answered), answered.headers.get("vary")]).toEqual([null, "Origin"]);
        expect(answered.headers.get("access-control-expose-headers")).toBeNull();
      }
    },
  );
});

test.each([ORIGIN, "null"])(
  "`*` allows every page, including the origin %s, to read responses and errors",
  async (origin) => {
    const authenticate = (): Promise<never> => Promise.reject(new DomainError("invalid_credential", "No."));
    await stage.open({ allowedOrigins: ["*"], callers: { authenticate } });
    const asked = await preflight(origin);
    const refused = await stage.chat(CHAT, { headers: { origin } });
    expect([asked.status, refused.status]).toEqual([204, 401]);
    for (const answered of [asked, refused]) expect(allowed(answered)).toBe("*");
  },
);

test("without allowed origins there are no CORS headers", async () => {
  await stage.open();
  const asked = await preflight(ORIGIN);
  expect(asked.status).toBe(405);
  const answered = await fetch(`${stage.url}/healthz`, { headers: { origin: ORIGIN } });
  for (const { headers } of [asked, answered]) {
    expect([...headers.keys()].filter((name) => name === "vary" || name.startsWith("access-control"))).toEqual([]);
  }
});
