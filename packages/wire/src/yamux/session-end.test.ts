import { type Duplex, duplexPair } from "node:stream";
import { describe, expect, test } from "vitest";
import { FRAME_FLAG, FRAME_TYPE } from "./frames.ts";
import { YamuxSession } from "./session.ts";
import { FIRST_WINDOW_BYTES } from "./stream.ts";
import { accepted, CLOCK, frame, LoneSession, opened, StreamLog, turns } from "./yamux.fixture.ts";

const { syn, ack, fin } = FRAME_FLAG;
const { data, windowUpdate, ping, goAway } = FRAME_TYPE;
const hello = Buffer.from("hello");
const full = Buffer.alloc(FIRST_WINDOW_BYTES);

describe("a session ends with all its streams, and reports why, when the other side", () => {
  const say = (flags: number, streamId: number): Buffer => frame({ type: data, flags, streamId }, Buffer.from("x"));

  test.each<[string, Buffer[]]>([
    ["sends more than the window allows", [frame({ type: data, streamId: 1 }, full)]],
    ["sends data after the end", [say(fin, 1), say(0, 1)]],
    ["ends a stream twice", [say(fin, 1), say(fin, 1)]],
    ["opens a stream twice", [say(syn, 1)]],
    ["opens a stream with an even ID", [say(syn, 2)]],
    ["opens stream 0", [say(syn, 0)]],
    ["grants a window that overflows", [frame({ type: windowUpdate, streamId: 1, length: 0xffff_ffff })]],
    ["sends data that is not a frame", [Buffer.from("GET / HTTP/1.1\r\n")]],
  ])("%s", async (_name, frames) => {
    const { lone, log } = await accepted();
    await lone.say(...frames, frame({ type: ping, flags: syn }));
    expect(lone.closed).toHaveLength(1);
    expect(lone.session.isClosed).toBe(true);
    expect(log.told.at(-1)).toMatch(/^failed: /);
    expect((await lone.sent()).at(-1)).toMatchObject({ type: goAway, streamId: 0, length: 1 });
  });

  test("opens a stream although it may not", async () => {
    const { lone, log } = opened();
    await lone.say(say(syn, 1));
    expect([lone.closed, log.text]).toEqual([
      ["a stream that may not be opened"],
      "failed: a stream that may not be opened",
    ]);
    expect((await lone.sent()).at(-1)).toMatchObject({ type: goAway, length: 1 });
  });

  test("goes away with an error code", async () => {
    const { lone, log } = await accepted();
    await lone.say(frame({ type: goAway, length: 2 }));
    expect([lone.closed, log.told.at(-1)]).toEqual([
      ["the other side gave up (code 2)"],
      "failed: the other side gave up (code 2)",
    ]);
  });
});

describe("the end of a session", () => {
  /** Two sessions that speak to each other, and how they ended. */
  function joined(): { opening: YamuxSession; accepting: YamuxSession; ends: string[]; near: Duplex; far: Duplex } {
    const [near, far] = duplexPair();
    const ends: string[] = [];
    const onClose = (side: string) => (reason: Error | undefined) =>
      void ends.push(`${side}: ${reason?.message ?? "in order"}`);
    const opening = new YamuxSession({ clock: CLOCK, socket: near, onClose: onClose("opening") });
    const accepting = new YamuxSession({
      clock: CLOCK,
      socket: far,
      onStream: (stream) => stream.handle(new StreamLog()),
      onClose: onClose("accepting"),
    });
    return { opening, accepting, ends, near, far };
  }

  test.each(["opening", "accepting"] as const)("is orderly on both sides when the %s side ends it", async (side) => {
    const { ends, ...sessions } = joined();
    sessions[side].end();
    expect([sessions[side].isUsable, sessions[side].isClosed]).toEqual([false, false]);
    expect(() => sessions[side].open()).toThrow("no new streams");
    await expect.poll(() => ends.toSorted()).toEqual(["accepting: in order", "opening: in order"]);
    sessions[side].end();
    sessions[side].destroy(new Error("late"));
    sessions[side].ping(() => undefined);
    expect(ends).toHaveLength(2);
  });

  test("fails open streams on both sides", async () => {
    const { opening, ends } = joined();
    const log = new StreamLog();
    const stream = opening.open();
    stream.handle(log);
    stream.write(hello);
    await turns(4);
    opening.end();
    await expect.poll(() => ends.length).toBe(2);
    expect(log.text).toBe("failed: the connection was closed");
  });

  test("allows no new streams once the other side announces it", async () => {
    const lone = new LoneSession("opens");
    const log = new StreamLog();
    const stream = lone.session.open();
    stream.handle(log);
    stream.end(hello);
    await lone.say(frame({ type: goAway }), frame({ type: data, flags: ack | fin, streamId: 1 }, hello));
    expect([lone.session.isUsable, log.text]).toEqual([false, "hello|end|closed"]);
  });

  test.each<[string, string, (far: Duplex, near: Duplex) => unknown]>([
    ["the other side closes it", "the other side closed the connection", (far) => far.end()],
    ["it fails", "broken", (_far, near) => near.destroy(new Error("broken"))],
    ["it is closed", "the connection is lost", (_far, near) => near.destroy()],
  ])("follows the end of the connection: %s", async (_name, reason, lose) => {
    const [near, far] = duplexPair();
    const told: string[] = [];
    const logs = Array.from({ length: 7 }, () => new StreamLog());
    const session = new YamuxSession({
      clock: CLOCK,
      socket: near,
      onClose: (failure) => void told.push(`${failure?.message} after ${logs.map((log) => log.told.at(-1)).join()}`),
    });
    const streams = logs.map((log) => {
      const stream = session.open();
      stream.handle(log);
      return stream;
    });
    const [, begun, ended, answered, waiting, breaking, reset] = streams;
    begun?.write(hello);
    ended?.end(hello);
    answered?.write(hello);
    waiting?.write(Buffer.alloc(2 * FIRST_WINDOW_BYTES));
    breaking?.write(Buffer.alloc(2 * FIRST_WINDOW_BYTES));
    breaking?.resetWhenSent();
    reset?.reset();
    far.write(frame({ type: data, flags: ack | fin, streamId: answered?.id ?? 0 }, hello));
    await turns(4);
    lose(far, near);
    await expect.poll(() => told.length).toBe(1);
    const failed = `failed: ${reason}`;
    expect(logs.map(({ text }) => text)).toEqual([
      failed,
      failed,
      failed,
      `hello|end|${failed}`,
      failed,
      failed,
      "closed",
    ]);
    expect(told).toEqual([`${reason} after ${logs.map((log) => log.told.at(-1)).join()}`]);
    for (const stream of streams) {
      stream.write(hello);
      stream.end();
      stream.resume();
      stream.reset();
    }
    await turns(4);
    expect(logs.map(({ told: all }) => all.length)).toEqual([1, 1, 1, 3, 1, 1, 1]);
  });
});
