import { duplexPair } from "node:stream";
import { describe, expect, test } from "vitest";
import { FRAME_FLAG, FRAME_TYPE } from "./frames.ts";
import { YamuxSession } from "./session.ts";
import { FIRST_WINDOW_BYTES, type YamuxStream } from "./stream.ts";
import { accepted, CLOCK, frame, framesOf, LoneSession, opened, StreamLog, turns } from "./yamux.fixture.ts";

const { syn, ack, fin, rst } = FRAME_FLAG;
const { data, windowUpdate, ping } = FRAME_TYPE;
const hello = Buffer.from("hello");
const full = Buffer.alloc(FIRST_WINDOW_BYTES);

describe("a session", () => {
  test("opens a stream with its first bytes, and accepts one with the first bytes that it sends", async () => {
    const { lone } = opened();
    expect(await lone.sent()).toMatchObject([{ type: data, flags: syn, streamId: 1, payload: hello }]);
    const { lone: other, log } = await accepted();
    other.accepted[0]?.end(hello);
    expect(await other.sent()).toMatchObject([{ type: data, flags: ack | fin, streamId: 1, payload: hello }]);
    expect(log.text).toBe("hello");
  });

  test("sends all data of one turn in one write", async () => {
    const [near, far] = duplexPair();
    const pieces: Buffer[] = [];
    const batches: number[] = [];
    near._writev = (chunks, done) => {
      batches.push(chunks.length);
      done();
    };
    near._write = (piece: Buffer, _encoding, done) => {
      pieces.push(piece);
      done();
    };
    far.resume();
    const session = new YamuxSession({ clock: CLOCK, socket: near, onClose: () => undefined });
    for (let count = 0; count < 3; count += 1) session.open().end(hello);
    await turns(2);
    expect([pieces.length, batches]).toEqual([1, []]);
    // A large payload is not copied: it goes between heads, in one call of the system.
    session.open().end(Buffer.alloc(10_000));
    session.open().end(hello);
    await turns(2);
    expect([pieces.length, batches]).toEqual([1, [3]]);
  });

  test("delivers the bytes of a final frame after those before it, and then the end", async () => {
    const { lone, log } = await accepted();
    await lone.say(frame({ type: data, streamId: 1 }, hello), frame({ type: data, flags: fin, streamId: 1 }, hello));
    expect(log.text).toBe("hello|hello|hello|end");
    lone.accepted[0]?.end();
    expect(log.text).toBe("hello|hello|hello|end|closed");
  });

  test("answers pings, and matches each answer to its ping", async () => {
    const lone = new LoneSession("opens");
    const answers: string[] = [];
    lone.session.ping(() => answers.push("first"));
    lone.session.ping(() => answers.push("second"));
    await lone.say(frame({ type: ping, flags: syn, length: 77 }));
    const sent = await lone.sent();
    expect(sent).toMatchObject([
      { type: ping, flags: syn },
      { type: ping, flags: syn },
      { type: ping, flags: ack, length: 77 },
    ]);
    const [first, second] = sent;
    await lone.say(frame({ type: ping, flags: ack, length: 12_345 }));
    expect(answers).toEqual([]);
    const answer = (length = 0): Buffer => frame({ type: ping, flags: ack, length });
    await lone.say(answer(second?.length), answer(second?.length), answer(first?.length));
    expect(answers).toEqual(["second", "first"]);
  });

  test("limits the memory for ping answers that the other side does not read", async () => {
    const [near, far] = duplexPair();
    let now = 0;
    // Time enough for each of them not to be a flood.
    const clock = { monotonic: () => (now += 60_000) };
    new YamuxSession({ clock, socket: near, onClose: () => undefined });
    const asked = 200_000;
    const pings = Array.from({ length: asked }, (_, at) => frame({ type: ping, flags: syn, length: at }));
    far.write(Buffer.concat(pings));
    await expect.poll(() => far.writableLength).toBe(0);
    await turns(4);
    expect(near.writableLength + far.readableLength).toBeLessThan(1024 * 1024);
    const read: Buffer[] = [];
    far.on("data", (bytes: Buffer) => void read.push(bytes));
    // The last one is answered all the same.
    await expect.poll(() => framesOf(Buffer.concat(read)).at(-1)?.length).toBe(asked - 1);
  });

  test("holds stream data back while the other side does not read, and sends it once it does", async () => {
    const lone = new LoneSession("opens");
    lone.far.pause();
    const piece = Buffer.alloc(64 * 1024);
    const streams = Array.from({ length: 100 }, () => lone.session.open());
    for (const stream of streams) {
      stream.write(piece);
      stream.end(hello);
      await turns(1);
    }
    expect(lone.waiting).toBeLessThan(400 * 1024);
    expect(lone.session.isCongested).toBe(true);
    lone.far.resume();
    await expect.poll(async () => (await lone.sent()).filter(({ flags }) => (flags & fin) !== 0).length).toBe(100);
    const bytes = (await lone.sent()).reduce((sum, { payload }) => sum + payload.length, 0);
    expect(bytes).toBe(100 * (piece.length + hello.length));
  });

  test("discards data for streams that it has just reset, and continues", async () => {
    const { lone, log, stream } = opened();
    await lone.sent();
    stream.reset();
    stream.reset();
    stream.write(hello);
    stream.end();
    expect(log.text).toBe("closed");
    await lone.say(
      frame({ type: data, flags: ack, streamId: 1 }, hello),
      frame({ type: windowUpdate, streamId: 1, length: 5 }),
      frame({ type: data, flags: fin, streamId: 1 }),
      frame({ type: windowUpdate, flags: rst, streamId: 1 }),
    );
    expect(await lone.sent()).toMatchObject([
      { flags: syn },
      { type: windowUpdate, flags: rst, streamId: 1, length: 0 },
    ]);
    const next = new StreamLog();
    const answered = lone.session.open();
    answered.handle(next);
    answered.end(hello);
    await lone.say(frame({ type: data, flags: ack | fin, streamId: answered.id }, hello));
    expect([next.text, lone.closed]).toEqual(["hello|end|closed", []]);
  });

  test("sends nothing for a stream that is reset before it sends data", async () => {
    const lone = new LoneSession("opens");
    const log = new StreamLog();
    const stream = lone.session.open();
    stream.handle(log);
    stream.reset();
    expect([log.text, await lone.sent()]).toEqual(["closed", []]);
  });

  test("rejects only streams beyond its limit", async () => {
    const lone = new LoneSession("accepts");
    const ids = Array.from({ length: 65_537 }, (_, at) => 2 * at + 1);
    await lone.say(...ids.map((streamId) => frame({ type: windowUpdate, flags: syn, streamId })));
    expect(lone.accepted).toHaveLength(65_536);
    expect(await lone.sent()).toMatchObject([{ type: windowUpdate, flags: rst, streamId: 131_073 }]);
    lone.accepted[0]?.reset();
    await lone.say(frame({ type: windowUpdate, flags: syn, streamId: 131_075 }));
    expect([lone.accepted.length, lone.closed]).toEqual([65_537, []]);
  });
});

describe("a session's connection", () => {
  /** Writes whenever there is room. */
  class Pourer extends StreamLog {
    readonly #stream: YamuxStream;

    constructor(stream: YamuxStream) {
      super();
      this.#stream = stream;
      stream.handle(this);
      this.onDrain();
    }

    override onDrain(): void {
      while (this.#stream.write(Buffer.alloc(16 * 1024)));
    }
  }

  test("is shared by all streams that have a lot to send", async () => {
    const [near, far] = duplexPair();
    const session = new YamuxSession({ clock: CLOCK, socket: near, onClose: () => undefined });
    const streams = [session.open(), session.open(), session.open()];
    for (const { id } of streams) far.write(frame({ type: windowUpdate, streamId: id, length: 0x7fff_ffff }));
    await turns(4);
    for (const stream of streams) new Pourer(stream);
    const read: Buffer[] = [];
    let bytes = 0;
    while (bytes < 12 * 1024 * 1024) {
      const piece = far.read() as Buffer | null;
      if (piece !== null) read.push(piece);
      bytes += piece?.length ?? 0;
      await turns(1);
    }
    session.destroy();
    const said = framesOf(Buffer.concat(read));
    for (const { id } of streams) {
      const share = said.reduce((sum, { streamId, length }) => (streamId === id ? sum + length : sum), 0);
      expect(share).toBeGreaterThan(bytes / 6);
    }
  });
});

describe("a stream's window", () => {
  test("holds back data that does not fit, and lets the writer continue once there is room", async () => {
    const { lone, log, stream } = opened();
    expect(stream.write(Buffer.alloc(FIRST_WINDOW_BYTES, 1))).toBe(false);
    await lone.say(frame({ type: windowUpdate, flags: ack, streamId: 1, length: 3 }));
    expect(log.text).toBe("");
    await lone.say(frame({ type: windowUpdate, streamId: 1, length: 2 }));
    // All has left, and still there is no room for more.
    expect(log.text).toBe("");
    await lone.say(frame({ type: windowUpdate, streamId: 1, length: 1 }));
    expect(log.text).toBe("drain");
    const lengths = (await lone.sent()).map(({ payload }) => payload.length);
    expect(lengths).toEqual([5, FIRST_WINDOW_BYTES - 5, 3, 2]);
  });

  test("makes the writer wait when it is used up", async () => {
    const { lone, log, stream } = opened();
    expect(stream.write(Buffer.alloc(FIRST_WINDOW_BYTES - 5))).toBe(false);
    await lone.say(frame({ type: windowUpdate, flags: ack, streamId: 1, length: 1000 }));
    expect(log.text).toBe("drain");
    expect(stream.write(hello)).toBe(true);
  });

  test("reopens as the reader consumes data, even if it pauses after each chunk", async () => {
    const { lone, log } = await accepted();
    log.takes = false;
    let credit = FIRST_WINDOW_BYTES - hello.length;
    for (let turn = 0; turn < 100; turn += 1) {
      credit -= 10_000;
      await lone.say(frame({ type: data, streamId: 1 }, Buffer.alloc(10_000)));
      lone.accepted[0]?.resume();
    }
    const granted = (await lone.sent()).reduce(
      (sum, { type, length }) => sum + (type === windowUpdate ? length : 0),
      0,
    );
    expect(credit + granted).toBeGreaterThanOrEqual(FIRST_WINDOW_BYTES / 2);
    expect(credit + granted).toBeLessThanOrEqual(FIRST_WINDOW_BYTES);
  });

  test("stays closed while its reader does not read, without affecting other streams", async () => {
    const { lone, log } = await accepted();
    log.takes = false;
    await lone.say(frame({ type: data, flags: syn, streamId: 3 }, full));
    const other = new StreamLog();
    const quick = lone.accepted[1];
    quick?.handle(other);
    await lone.say(frame({ type: data, streamId: 1 }, Buffer.alloc(FIRST_WINDOW_BYTES - 5)));
    await lone.say(frame({ type: data, flags: fin, streamId: 3 }, hello));
    expect(other.told.slice(-2)).toEqual(["hello", "end"]);
    const updates = (await lone.sent()).filter(({ streamId }) => streamId === 1);
    expect(updates).toEqual([]);
    await lone.say(frame({ type: data, streamId: 1 }, Buffer.from("x")));
    expect(lone.closed).toEqual(["more was sent than there was room for"]);
  });

  test("is enlarged on request", async () => {
    const lone = new LoneSession("accepts");
    await lone.say(frame({ type: data, flags: syn, streamId: 1 }, hello));
    lone.accepted[0]?.handle(new StreamLog(), 1024 * 1024);
    const length = 1024 * 1024 - FIRST_WINDOW_BYTES;
    expect(await lone.sent()).toMatchObject([{ type: windowUpdate, flags: ack, streamId: 1, length }]);
  });
});

describe("a stream", () => {
  test("that is aborted with unread bytes delivers them to the side that opened it, then the failure", async () => {
    const { lone, log, stream } = opened();
    log.takes = false;
    const say = (text: string): Buffer => frame({ type: data, streamId: 1 }, Buffer.from(text));
    await lone.say(say("a"), say("b"), frame({ type: windowUpdate, flags: rst, streamId: 1 }));
    expect(log.text).toBe("a");
    stream.write(hello);
    stream.resume();
    expect(log.text).toBe("a|b|failed: the other side broke off");
    expect((await lone.sent()).filter(({ streamId }) => streamId === 1)).toHaveLength(1);
  });

  test("that is aborted with unread bytes ends immediately when the connection is lost or it is reset", async () => {
    for (const lose of [(lone: LoneSession) => lone.session.destroy(new Error("lost")), undefined]) {
      const { lone, log, stream } = opened();
      log.takes = false;
      const say = (text: string): Buffer => frame({ type: data, streamId: 1 }, Buffer.from(text));
      await lone.say(say("a"), say("b"), frame({ type: windowUpdate, flags: rst, streamId: 1 }));
      if (lose === undefined) stream.reset();
      else lose(lone);
      expect(log.text).toBe(lose === undefined ? "a|closed" : "a|failed: lost");
      expect((await lone.sent()).map(({ flags }) => flags)).toEqual([syn]);
    }
  });

  test("that is aborted ends immediately for the side that accepted it", async () => {
    const { lone, log } = await accepted();
    log.takes = false;
    await lone.say(frame({ type: data, streamId: 1 }, hello), frame({ type: data, streamId: 1 }, hello));
    await lone.say(frame({ type: windowUpdate, flags: rst, streamId: 1 }));
    expect(log.text).toBe("hello|hello|failed: the other side broke off");
  });

  test("is aborted after the written data is sent, however long that takes", async () => {
    const { lone, log } = await accepted();
    const stream = lone.accepted[0];
    stream?.write(full);
    stream?.write(hello);
    stream?.resetWhenSent();
    expect(stream?.isClosed).toBe(false);
    await lone.say(frame({ type: windowUpdate, streamId: 1, length: 100 }));
    expect((await lone.sent()).slice(-2)).toMatchObject([{ payload: hello }, { type: windowUpdate, flags: rst }]);
    expect(log.told.at(-1)).toBe("closed");
  });

  test("that has sent everything is not aborted", async () => {
    const { lone, log } = await accepted();
    lone.accepted[0]?.end(hello);
    lone.accepted[0]?.resetWhenSent();
    await lone.say(frame({ type: data, flags: fin, streamId: 1 }));
    lone.accepted[0]?.reset();
    expect((await lone.sent()).map(({ flags }) => flags)).toEqual([ack | fin]);
    expect(log.text).toBe("hello|end|closed");
  });

  test("that is reset after the other side has sent everything is aborted only if this side has not", async () => {
    for (const isWhole of [true, false]) {
      const { lone } = await accepted();
      const stream = lone.accepted[0];
      if (stream === undefined) throw new Error("no stream");
      const log = new StreamLog();
      log.onEnd = () => stream.reset();
      stream.handle(log);
      stream.write(hello);
      if (isWhole) stream.end();
      await lone.say(frame({ type: data, flags: fin, streamId: 1 }));
      expect((await lone.sent()).at(-1)?.flags).toBe(isWhole ? fin : rst);
      expect(log.text).toBe("closed");
    }
  });
});
