import { DomainError } from "@fairlead/protocol/errors";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CHAT, HostStage } from "../host/host-stage.fixture.ts";
import { JSON_TYPE } from "../relay/call-relay.fixture.ts";
import type { ScriptedCall } from "../testing/scripted-upstream.ts";
import { NotReached } from "./upstream-faults.ts";

let stage: HostStage;
let lines: Record<string, unknown>[];
beforeEach(async () => {
  stage = new HostStage();
  lines = [];
  await open(1);
});
afterEach(() => stage.close());

async function open(maxAttempts: number): Promise<void> {
  const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>);
  const log = pino({ level: "info" }, { write });
  await stage.open({ log, platformUpstreams: new Set(["openai"]), limits: { maxAttempts } });
}

const counted = (): unknown[] => [...(stage.host?.counters.failures() ?? [])];
const saying =
  (status: number, message = "What you asked is secret.") =>
  (far: ScriptedCall): void => {
    far.respond(status, JSON_TYPE);
    far.write(JSON.stringify({ error: { message } }));
    far.end();
  };

describe("a failure of an upstream", () => {
  test("is reported with its upstream and reason to the caller, in the log and in a metric", async () => {
    const refused = new NotReached("upstream_failed", "connection refused");
    stage.place("a", (far) => far.fail(refused), { upstreamId: "openai" });
    const answered = await stage.chat();
    expect(answered.status).toBe(502);
    const { error } = (await answered.json()) as { error: { message: string; requestId: string } };
    expect(error.message).toBe("openai: connection refused");
    expect(lines).toMatchObject([
      {
        level: 40,
        msg: "openai: connection refused",
        upstream: "openai",
        reason: "not_reached",
        requestId: error.requestId,
        projectId: "prj_1",
      },
    ]);
    expect(counted()).toEqual([{ upstream: "openai", reason: "not_reached", count: 1 }]);
  });

  test.each<[string, (far: ScriptedCall) => void, string, string]>([
    ["a 500", saying(500), "failed", "box: returned status 500"],
    ["a limit", saying(429), "rate_limited", "box: returned status 429"],
    ["529", saying(529), "overloaded", "box: returned status 529"],
    ["401", saying(401), "credentials", "box: rejected the credential"],
    ["an error with 200", saying(200), "failed", "box: reported an error"],
  ])("is logged without the upstream's message: %s", async (...row) => {
    const [, play, reason, words] = row;
    stage.place("a", play, { upstreamId: "box", kind: "provider" });
    await (await stage.chat()).text();
    expect(lines).toMatchObject([{ reason, msg: expect.stringContaining(words) as string }]);
    expect(JSON.stringify(lines)).not.toContain("secret");
    expect(counted()).toEqual([{ upstream: "provider", reason, count: 1 }]);
  });

  test("is counted for every attempt, and logged every ten seconds, with the number in between", async () => {
    await stage.close();
    await open(2);
    stage.place("a", saying(500), { rank: 0 });
    stage.place("b", saying(503), { rank: 1 });
    for (let i = 0; i < 2; i++) await (await stage.chat()).text();
    expect(lines.map(({ upstream }) => upstream)).toEqual(["node:a", "node:b"]);
    expect(counted()).toEqual([{ upstream: "node", reason: "failed", count: 4 }]);
    stage.clock.advance(10_000);
    await (await stage.chat()).text();
    expect(lines.slice(2)).toMatchObject([
      { upstream: "node:a", unlogged: 1 },
      { upstream: "node:b", unlogged: 1 },
    ]);
  });

  test("does not include errors of the caller or of the host", async () => {
    stage.place("a", saying(400));
    await (await stage.chat()).text();
    await (await stage.chat([])).text();
    expect(counted()).toEqual([]);
    expect(lines).toEqual([]);
  });

  test("is counted as not reached if no engine is running", async () => {
    stage.place("a", (far) => far.fail(new DomainError("no_running_engine", "Its engine is not running.")));
    expect((await stage.chat(CHAT)).status).toBe(503);
    expect(counted()).toEqual([{ upstream: "node", reason: "not_reached", count: 1 }]);
  });
});
