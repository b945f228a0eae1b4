import { duplexPair } from "node:stream";
import { systemClock } from "@fairlead/protocol/values/clock";
import { writeHead } from "@fairlead/wire/tunnel-heads";
import { YamuxSession } from "@fairlead/wire/yamux/session";
import type { YamuxStream } from "@fairlead/wire/yamux/stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { CallLog } from "./tunnel.fixture.ts";
import { YamuxTunnel } from "./yamux-tunnel.ts";

const HEAD = { workload: "engine", method: "GET", path: "/", headers: {} };
const GET = { ...HEAD, body: [] };
const OPTIONS = {
  liveness: { pingIntervalMs: 60_000, pingTimeoutMs: 60_000 },
  clock: systemClock,
  bounds: new BoundCounters(),
};

let tunnel: YamuxTunnel;
let node: YamuxSession;
let closed: string[];
/** The node's side of the calls, and how each of them ended there. */
let streams: YamuxStream[];
let ends: (string | null)[];

beforeEach(() => {
  const [near, far] = duplexPair();
  const told: string[] = [];
  const accepted: YamuxStream[] = [];
  const over: (string | null)[] = [];
  [closed, streams, ends] = [told, accepted, over];
  tunnel = new YamuxTunnel(near, OPTIONS, (reason) => void told.push(reason?.message ?? "in order"));
  node = new YamuxSession({
    socket: far,
    clock: systemClock,
    onStream: (stream) => {
      accepted.push(stream);
      stream.handle({
        onData: () => true,
        onEnd: () => undefined,
        onDrain: () => undefined,
        onClose: (failure) => void over.push(failure?.message ?? null),
      });
    },
    onClose: () => undefined,
  });
});

afterEach(() => tunnel.destroy(new Error("the test is over")));

/** Calls, and has the node say these bytes as its answer. */
async function answered(
  answer: { readonly bytes: Buffer; readonly isWhole: boolean },
  method = "GET",
): Promise<CallLog> {
  const log = new CallLog();
  const before = streams.length;
  tunnel.open({ ...GET, method }, log);
  await expect.poll(() => streams.length).toBe(before + 1);
  const stream = streams.at(-1);
  if (answer.isWhole) stream?.end(answer.bytes);
  else stream?.write(answer.bytes);
  await expect.poll(() => log.text).toMatch(/end$|failed: /);
  return log;
}

const sized = (length: string, body: string, status = 200): Buffer =>
  Buffer.concat([writeHead({ status, headers: { "content-length": length } }), Buffer.from(body)]);

describe("a tunnel over yamux", () => {
  test.each<[string, Buffer, string]>([
    ["no head", Buffer.alloc(0), "a response without a head"],
    ["half a head", writeHead({ status: 200, headers: {} }).subarray(0, 9), "a response without a head"],
    ["a head that is not JSON", Buffer.from("\0\0\0\u{1}{"), "a head that is not JSON"],
    ["a request's head", writeHead({ ...HEAD, kind: "body" }), "not the head of a response"],
    ["a header with a second line", writeHead({ status: 200, headers: { a: "b\r\nc: d" } }), "a malformed header"],
    ["a length that is not a number", sized("1, 1", "a"), "a length that is not a number"],
  ])("fails only the call whose response has %s", async (_what, bytes, reason) => {
    expect((await answered({ bytes, isWhole: true })).told).toEqual([`failed: ${reason}`]);
    await expect.poll(() => ends).toHaveLength(1);
    expect((await answered({ bytes: sized("1", "a"), isWhole: true })).text).toBe("200|a|end");
    expect(closed).toEqual([]);
  });

  test.each([100, 1000, 5000])("completes %i concurrent calls, each with its own response", async (calls) => {
    const bodyOf = (n: number): string => `${n}`.padEnd(2000, "x");
    const logs = Array.from({ length: calls }, () => {
      const log = new CallLog();
      tunnel.open(GET, log);
      return log;
    });
    await expect.poll(() => streams.length).toBe(calls);
    for (const [n, stream] of streams.entries()) stream.end(sized("2000", bodyOf(n)));
    await expect.poll(() => logs.filter(({ told }) => told.at(-1) === "end").length).toBe(calls);
    const bodies = logs.map(({ told }) => told.slice(1, -1).join(""));
    expect(bodies).toEqual(logs.map((_log, n) => bodyOf(n)));
    expect(closed).toEqual([]);
  });

  test("stops the node's work on a response that it rejects", async () => {
    await answered({ bytes: Buffer.from("\0\0\0\u{1}{"), isWhole: false });
    await expect.poll(() => ends).toEqual(["the other side broke off"]);
  });

  test("delivers exactly as much of a body as its declared length, or fails the call", async () => {
    expect((await answered({ bytes: sized("3", "abc"), isWhole: true })).text).toBe("200|abc|end");
    const long = await answered({ bytes: sized("3", "abcd"), isWhole: false });
    expect(long.text).toBe("200|failed: a response longer than its declared length");
    await expect.poll(() => ends.at(-1)).toBe("the other side broke off");
    const short = await answered({ bytes: sized("3", "ab"), isWhole: true });
    expect(short.text).toBe("200|ab|failed: a response shorter than its declared length");
    expect((await answered({ bytes: sized("3", ""), isWhole: true }, "HEAD")).text).toBe("200|end");
    expect((await answered({ bytes: sized("3", "", 304), isWhole: true })).text).toBe("304|end");
    expect((await answered({ bytes: sized("3", "abc"), isWhole: false }, "HEAD")).text).toMatch(
      /longer than its declared length$/,
    );
  });

  test("delivers nothing after the caller aborts in a callback", async () => {
    const log = new CallLog();
    const call = tunnel.open(GET, log);
    log.onHeaders = () => call.abort();
    await expect.poll(() => streams.length).toBe(1);
    streams[0]?.end(sized("3", "abc"));
    await expect.poll(() => ends).toHaveLength(1);
    expect(log.told).toEqual([]);
    expect((await answered({ bytes: sized("1", "a"), isWhole: true })).text).toBe("200|a|end");
  });

  test("fails a call that the node breaks off before, during and after the response head", async () => {
    for (const [said, told] of [
      ["", ""],
      ["\0\0", ""],
      [sized("3", "a"), "200|a|"],
    ] as const) {
      const log = new CallLog();
      tunnel.open(GET, log);
      const before = streams.length;
      await expect.poll(() => streams.length).toBe(before + 1);
      streams.at(-1)?.write(Buffer.from(said));
      streams.at(-1)?.resetWhenSent();
      await expect.poll(() => log.text).toBe(`${told}failed: the other side broke off`);
    }
  });

  test("becomes unusable when the node closes it, and fails the running calls", async () => {
    const log = new CallLog();
    tunnel.open(GET, log);
    await expect.poll(() => streams.length).toBe(1);
    expect(tunnel.usable).toBe(true);
    node.end();
    await expect.poll(() => tunnel.usable).toBe(false);
    const late = new CallLog();
    tunnel.open(GET, late);
    await expect.poll(() => late.text).toBe("failed: the tunnel is closed");
    await expect.poll(() => log.text).toBe("failed: the connection was closed");
    await tunnel.idle();
  });

  test("fails the running calls when it is lost, and is then idle", async () => {
    const logs = [new CallLog(), new CallLog()];
    for (const log of logs) tunnel.open(GET, log);
    const over = tunnel.idle();
    tunnel.destroy(new Error("lost"));
    tunnel.destroy(new Error("again"));
    await over;
    expect(logs.map(({ text }) => text)).toEqual(["failed: lost", "failed: lost"]);
    tunnel.drain();
    await tunnel.idle();
    expect(closed).toEqual(["lost"]);
  });

  test("closes cleanly when it is drained", async () => {
    const log = new CallLog();
    tunnel.open(GET, log);
    await expect.poll(() => streams.length).toBe(1);
    tunnel.drain();
    expect([tunnel.usable, closed]).toEqual([false, []]);
    streams[0]?.end(sized("1", "a"));
    await expect.poll(() => closed).toHaveLength(1);
    expect([log.text, closed]).toEqual(["200|a|end", ["in order"]]);
    expect(ends).toEqual([null]);
  });
});
