import { LOGS_WORKLOAD, TUNNEL_FAULT_HEADER } from "@fairlead/protocol/daemon-link";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type LogLine, type LogOptions, RuntimeError } from "../runtime/container-runtime.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { silentLog } from "../testing/silent-log.ts";
import type { TestCaller } from "../tunnel/tunnel-caller.fixture.ts";
import { callThrough, settled, stillness, type TunnelHarness } from "../tunnel/tunnel-stage.fixture.ts";
import { openTestTunnel } from "../tunnel/yamux-caller.fixture.ts";
import { createLogServer, type LogSource } from "./log-server.ts";

type FollowLogs = (id: string, options: LogOptions, signal: AbortSignal) => AsyncIterable<LogLine>;

const line = (second: number, said: string): LogLine => ({
  at: `2026-01-01T00:00:${String(second).padStart(2, "0")}.000000000Z`,
  stream: "stdout",
  text: said,
});

const time = new FakeTime();
let tunnel: TunnelHarness;
let source: LogSource | null;
let asked: { readonly id: string; readonly options: LogOptions }[];
let followLogs: FollowLogs;

beforeEach(async () => {
  [source, asked] = [{ id: "one", running: true, startedAt: "1" }, []];
  const runtime = {
    followLogs: (id: string, options: LogOptions, signal: AbortSignal) => {
      asked.push({ id, options });
      return followLogs(id, options, signal);
    },
  };
  const find = (workload: string): LogSource | null => (workload === "engine" ? source : null);
  tunnel = await openTestTunnel(createLogServer({ find, runtime, timers: time, log: silentLog }));
});

afterEach(() => tunnel.close());

const ask = (path: string): TestCaller => callThrough(tunnel, { workload: LOGS_WORKLOAD, path });

const answered = (caller: TestCaller, status = 200): Promise<void> => expect.poll(() => caller.status).toBe(status);

const said = (body: string): string[] =>
  body
    .split("\n")
    .filter(Boolean)
    .map((json) => (JSON.parse(json) as LogLine).text);

/** Yields these lines and waits, like a running container. */
const endless = (...lines: readonly LogLine[]): FollowLogs =>
  async function* (_id, _options, signal) {
    yield* lines;
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
  };

describe("the logs of a workload", () => {
  test("are sent line by line, with the requested options", async () => {
    followLogs = async function* () {
      yield line(1, "ready\u2028 “now”");
    };
    const caller = ask("/engine?follow=false&tail=5&since=2026-01-01T00%3A00%3A00Z");
    await settled(caller, "whole");
    expect(caller).toMatchObject({ status: 200, headers: { "content-type": "application/x-ndjson" } });
    expect(said(caller.body.toString())).toEqual(["ready\u2028 “now”"]);
    expect(asked).toEqual([{ id: "one", options: { follow: false, tail: 5, since: "2026-01-01T00:00:00Z" } }]);
  });

  test("of a workload without a container are refused", async () => {
    const caller = ask("/other");
    await answered(caller, 503);
    expect(caller.headers).toMatchObject({ [TUNNEL_FAULT_HEADER]: "no_running_engine" });
  });

  test("that the container engine does not provide are aborted, and do not look empty", async () => {
    followLogs = () => {
      throw new RuntimeError("unavailable", "away");
    };
    const caller = ask("/engine");
    await settled(caller, "failed");
    expect(caller.status).toBe(200);
  });

  test("continue with the next run, and repeat no line of this container", async () => {
    const runs: FollowLogs[] = [
      async function* () {
        yield line(1, "first");
        yield line(2, "dies");
      },
      async function* () {
        yield line(2, "dies");
        yield line(3, "again");
      },
      endless(line(1, "a new container")),
    ];
    followLogs = (...args) => runs.shift()?.(...args) ?? endless()(...args);
    const caller = ask("/engine?follow=true&tail=10");
    const lines = (): string[] => said(caller.body.toString());
    await expect.poll(lines).toEqual(["first", "dies"]);
    source = { id: "one", running: true, startedAt: "2" };
    await expect.poll(async () => (await time.advance(500), lines())).toEqual(["first", "dies", "again"]);
    source = { id: "two", running: true, startedAt: "3" };
    await expect
      .poll(async () => (await time.advance(500), lines()))
      .toEqual(["first", "dies", "again", "a new container"]);
    expect(asked.map(({ id, options: { since, tail } }) => [id, since, tail])).toEqual([
      ["one", null, 10],
      ["one", line(2, "").at, null],
      ["two", null, null],
    ]);
    caller.abort();
  });

  test("stop at the container engine when the caller leaves", async () => {
    let ended = false;
    followLogs = async function* (_id, _options, signal) {
      yield line(1, "hello");
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      ended = true;
    };
    const caller = ask("/engine?follow=true");
    await answered(caller);
    caller.abort();
    await expect.poll(() => ended).toBe(true);
  });

  test("are read no faster than the caller reads them", async () => {
    let read = 0;
    followLogs = async function* () {
      for (; read < 100_000; read++) yield line(1, "x".repeat(1000));
    };
    const caller = ask("/engine?follow=false");
    caller.pause();
    expect(await stillness(() => read)).toBeLessThan(5000);
    caller.resume();
    caller.abort();
  });
});
