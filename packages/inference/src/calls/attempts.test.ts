import { scanCall } from "@fairlead/dialects/calls/call-scan";
import type { Dialect } from "@fairlead/dialects/calls/dialect";
import { DomainError } from "@fairlead/protocol/errors";
import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { describe, expect, test } from "vitest";
import { WHOLE } from "../relay/bridged.fixture.ts";
import { LIMITS, NOTHING_RECENT, PLACE } from "../relay/call-relay.fixture.ts";
import { type CallerItems, RecentItems } from "../routing/recent-items.ts";
import type { AttemptFault } from "../routing/retry-rules.ts";
import { UpstreamLeases } from "../routing/upstream-leases.ts";
import { ScriptedUpstream } from "../testing/scripted-upstream.ts";
import { type Attempt, Attempts } from "./attempts.ts";
import type { Candidate } from "./model-catalog.ts";

const FAILED: AttemptFault = { kind: "failed", error: new DomainError("upstream_failed", "It failed.") };

const candidate = (protocol: Dialect, rest: Partial<Candidate> = {}): Candidate => ({
  ...PLACE,
  upstreamId: protocol,
  kind: "provider",
  model: "m",
  protocols: [protocol],
  open: () => new ScriptedUpstream(),
  ...rest,
});

interface Asked {
  readonly candidates: readonly Candidate[];
  readonly recent?: CallerItems;
}

function attempts(dialect: Dialect, body: string, { candidates, recent = NOTHING_RECENT }: Asked): Attempts {
  const bytes = [Buffer.from(body)];
  const submitted = { bytes, scan: scanCall(bytes, dialect), dialect };
  return new Attempts({
    id: "req_1",
    createdAt: 1,
    candidates,
    body: submitted,
    headers: {},
    timeouts: LIMITS,
    recent,
    places: new UpstreamLeases(new TestClock()),
    projectId: "prj_1",
    retries: { maxAttempts: 4, maxRetryWaitMs: 5000 },
    random: () => 0.5,
  });
}

const bodyOf = (made: Attempt): string => Buffer.concat([...made.request.body]).toString();

describe("attempts", () => {
  test("are sent byte for byte as submitted if the upstream supports the dialect", () => {
    const body = '{ "model":"a/m", "input": "x", "n": 12345678901234567890 }';
    const first = attempts("responses", body, { candidates: [candidate("responses")] }).first().attempt;
    expect(bodyOf(first)).toBe(body.replace("a/m", "m"));
    expect(first.asked.conversion).toBeNull();
  });

  test("skip an upstream that supports neither dialect, and fail with `unsupported_input` if there is no other", () => {
    const mute = candidate("chat", { protocols: [] });
    const body = '{"model":"a/m","messages":[]}';
    const first = attempts("chat", body, { candidates: [mute, candidate("chat", { model: "other" })] }).first().attempt;
    expect(JSON.parse(bodyOf(first))).toMatchObject({ model: "other" });
    expect(() => attempts("chat", body, { candidates: [mute] }).first()).toThrow(
      expect.objectContaining({ code: "unsupported_input" }),
    );
  });

  test("are otherwise converted, with large numbers, a byte order mark and upstream-specific options", () => {
    const body = '\ufeff{"input":"é","model":"a/m","max_output_tokens":9,"seed":12345678901234567890}';
    const chat = { outputLimit: "max_completion_tokens" } as const;
    const first = attempts("responses", body, { candidates: [candidate("chat", { chat })] }).first().attempt;
    expect(first.request.path).toBe("/chat/completions");
    expect(bodyOf(first)).toContain('"seed":12345678901234567890');
    expect(JSON.parse(bodyOf(first))).toMatchObject({
      model: "m",
      max_completion_tokens: 9,
      messages: [{ role: "user", content: "é" }],
    });
    expect(first.request.headers["content-length"]).toBe(String(Buffer.byteLength(bodyOf(first))));
  });

  test("skip an upstream whose dialect cannot express the call", () => {
    const body = '{"model":"a/m","input":"x","previous_response_id":"resp_1"}';
    const made = attempts("responses", body, {
      candidates: [candidate("chat"), candidate("responses"), candidate("chat")],
    });
    expect(made.first().attempt.asked.upstreamId).toBe("responses");
    expect(made.after(FAILED)).toBeNull();
  });

  test("are rejected with the field name if no upstream's dialect can express the call", () => {
    const body = '{"model":"a/m","input":"x","background":true}';
    const made = attempts("responses", body, { candidates: [candidate("chat"), candidate("chat")] });
    expect(() => made.first()).toThrow(expect.objectContaining({ code: "invalid_request", param: "background" }));
  });

  test.each([
    ["that is nested too deeply", `{"model":"a/m","input":${"[".repeat(600)}${"]".repeat(600)}}`, "malformed_json"],
    ["with an invalid escape", '{"model":"a/m","input":"\\q"}', "malformed_json"],
    ["without a message", '{"model":"a/m","input":[]}', "invalid_request"],
  ])("are rejected for a body %s", (_name, body, code) => {
    expect(() => attempts("responses", body, { candidates: [candidate("chat")] }).first()).toThrow(
      expect.objectContaining({ code }),
    );
  });

  test("include the items that are referenced, and are rejected for unknown ones", () => {
    const recent = new RecentItems(new TestClock()).of("key_1");
    const message = {
      id: "msg_1",
      type: "message",
      role: "assistant",
      content: [{ type: "output_text", text: "Yes." }],
    };
    recent.remember([message]);
    const body = (id: string): string =>
      JSON.stringify({
        model: "a/m",
        input: [
          { type: "item_reference", id },
          { role: "user", content: "Why?" },
        ],
      });
    const made = attempts("responses", body("msg_1"), { candidates: [candidate("chat")], recent }).first().attempt;
    expect(JSON.parse(bodyOf(made))).toMatchObject({
      messages: [
        { role: "assistant", content: "Yes." },
        { role: "user", content: "Why?" },
      ],
    });
    expect(made?.referredBytes).toBeGreaterThan(80);
    const unknown = attempts("responses", body("msg_2"), { candidates: [candidate("chat")], recent });
    expect(() => unknown.first()).toThrow(expect.objectContaining({ code: "invalid_request", param: "input[0]" }));
  });

  test("end with the current fault if a referenced item is forgotten before a retry", () => {
    const told = [{ type: "message", role: "assistant", content: "Yes." }];
    const recent: CallerItems = { remember: () => undefined, find: () => told.pop() };
    const body = JSON.stringify({ model: "a/m", input: [{ type: "item_reference", id: "msg_1" }] });
    const made = attempts("responses", body, { candidates: [candidate("chat")], recent });
    made.first();
    expect(made.after({ ...FAILED, kind: "busy" })).toBeNull();
  });

  test.each([
    [true, undefined],
    [true, true],
    [false, false],
  ])("remember the response (%s) if `store` is %s", (remembers, store) => {
    const recent = new RecentItems(new TestClock()).of("key_1");
    const body = JSON.stringify({ model: "a/m", input: "x", store });
    const conversion = attempts("responses", body, { candidates: [candidate("chat")], recent }).first().attempt.asked
      .conversion;
    const told = JSON.parse(conversion?.whole(WHOLE.chat) ?? "") as { output: [{ id: string }] };
    expect(recent.find(told.output[0].id) !== undefined).toBe(remembers);
    const frames = conversion?.stream();
    frames?.push(WHOLE.chat);
    frames?.end();
    expect(recent.find(told.output[0].id) !== undefined).toBe(remembers);
  });
});
