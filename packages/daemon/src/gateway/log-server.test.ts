import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { TUNNEL_FAULT_HEADER } from "@fairlead/protocol/daemon-link";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type LogLine, type LogOptions, RuntimeError } from "../runtime/container-runtime.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { silentLog } from "../testing/silent-log.ts";
import { h2Calls } from "../tunnel/h2-call.ts";
import { createLogServer, type LogSource } from "./log-server.ts";

type FollowLogs = (id: string, options: LogOptions, signal: AbortSignal) => AsyncIterable<LogLine>;

const line = (second: number, said: string): LogLine => ({
  at: `2026-01-01T00:00:${String(second).padStart(2, "0")}.000000000Z`,
  stream: "stdout",
  text: said,
});

const time = new FakeTime();
let server: Http2Server;
let caller: ClientHttp2Session;
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
  server = createServer();
  const find = (workload: string): LogSource | null => (workload === "engine" ? source : null);
  server.on("stream", h2Calls(createLogServer({ find, runtime, timers: time, log: silentLog })));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  caller = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});

afterEach(() => {
  caller.destroy();
  server.close();
});

function ask(path: string): ClientHttp2Stream {
  return caller.request({ ":path": path });
}

const headersOf = (stream: ClientHttp2Stream): Promise<IncomingHttpHeaders> =>
  new Promise((resolve, reject) => stream.once("response", resolve).once("error", reject));

const said = (body: string): string[] =>
  body
    .split("\n")
    .filter(Boolean)
    .map((json) => (JSON.parse(json) as LogLine).text);

/** Yields these and waits, as a container does that runs on. */
const endless = (...lines: readonly LogLine[]): FollowLogs =>
  async function* (_id, _options, signal) {
    yield* lines;
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
  };

describe("the logs of a workload", () => {
  test("are told line by line, as they were asked for", async () => {
    followLogs = async function* () {
      yield line(1, "ready\u2028 “now”");
    };
    const stream = ask("/engine?follow=false&tail=5&since=2026-01-01T00%3A00%3A00Z");
    expect(await headersOf(stream)).toMatchObject({ ":status": 200, "content-type": "application/x-ndjson" });
    expect(said(await text(stream))).toEqual(["ready\u2028 “now”"]);
    expect(asked).toEqual([{ id: "one", options: { follow: false, tail: 5, since: "2026-01-01T00:00:00Z" } }]);
  });

  test("of a workload that has no container are refused", async () => {
    const headers = await headersOf(ask("/other"));
    expect(headers).toMatchObject({ ":status": 503, [TUNNEL_FAULT_HEADER]: "no_running_engine" });
  });

  test("that the container engine does not give are broken off, and do not look empty", async () => {
    followLogs = () => {
      throw new RuntimeError("unavailable", "away");
    };
    const stream = ask("/engine");
    stream.on("error", () => undefined);
    await headersOf(stream);
    await expect(text(stream)).rejects.toThrow();
  });

  test("go on with the next run, and repeat no line of this container", async () => {
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
    const stream = ask("/engine?follow=true&tail=10");
    stream.setEncoding("utf8");
    let body = "";
    stream.on("data", (piece: string) => {
      body += piece;
    });
    await expect.poll(() => said(body)).toEqual(["first", "dies"]);
    source = { id: "one", running: true, startedAt: "2" };
    await expect.poll(async () => (await time.advance(500), said(body))).toEqual(["first", "dies", "again"]);
    source = { id: "two", running: true, startedAt: "3" };
    await expect
      .poll(async () => (await time.advance(500), said(body)))
      .toEqual(["first", "dies", "again", "a new container"]);
    expect(asked.map(({ id, options: { since, tail } }) => [id, since, tail])).toEqual([
      ["one", null, 10],
      ["one", line(2, "").at, null],
      ["two", null, null],
    ]);
    stream.close();
  });

  test("end at the container engine when the caller leaves", async () => {
    let ended = false;
    followLogs = async function* (_id, _options, signal) {
      yield line(1, "hello");
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      ended = true;
    };
    const stream = ask("/engine?follow=true");
    await headersOf(stream);
    stream.close();
    await expect.poll(() => ended).toBe(true);
  });

  test("are read no faster than the caller takes them", async () => {
    let read = 0;
    followLogs = async function* () {
      for (; read < 100_000; read++) yield line(1, "x".repeat(1000));
    };
    const stream = ask("/engine?follow=false");
    await headersOf(stream);
    stream.pause();
    let before = -1;
    await expect
      .poll(
        () => {
          const still = read === before;
          before = read;
          return still;
        },
        { interval: 100 },
      )
      .toBe(true);
    expect(read).toBeLessThan(5000);
    stream.resume();
    stream.close();
  });
});
