import fc from "fast-check";
import { expect, test } from "vitest";
import { YamuxSession } from "./session.ts";
import type { YamuxStream, YamuxStreamHandler } from "./stream.ts";
import { CheckedWire, CLOCK, turns } from "./yamux.fixture.ts";

/** What one side does with one stream. */
interface Script {
  /** Sizes of what it writes, in bytes. */
  readonly writes: readonly number[];
  /** Turns of the event loop that it waits before each write, and its reader after each pause. */
  readonly waits: readonly number[];
  /** Whether its reader pauses after a chunk. */
  readonly pauses: readonly boolean[];
  readonly last: "end" | "end with bytes" | "reset" | "resetWhenSent";
  readonly windowBytes: number;
}

const cycle = <Item>(items: readonly Item[]): (() => Item) => {
  let at = 0;
  return () => items[at++ % items.length] as Item;
};

/** The bytes that a side says differ from stream to stream and from place to place. */
function pattern(seed: number, from: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  for (let at = 0; at < length; at += 1) bytes[at] = ((from + at) * 31 + ((from + at) >> 8) + seed) & 0xff;
  return bytes;
}

/** One side of a stream: writes by its script, and checks what it reads against what the other side says. */
class Actor implements YamuxStreamHandler {
  readonly faults: string[] = [];
  readonly #script: Script;
  readonly #seed: number;
  readonly #readSeed: number;
  readonly #nextWait: () => number;
  readonly #nextPause: () => boolean;
  #stream: YamuxStream | undefined;
  #onDrain: (() => void) | undefined;
  #isPaused = false;
  written = 0;
  read = 0;
  ends = 0;
  closes = 0;
  failure: Error | null = null;
  tellOver: () => void = () => undefined;
  readonly over = new Promise<void>((resolve) => {
    this.tellOver = resolve;
  });

  constructor(script: Script, seed: number, readSeed: number) {
    this.#script = script;
    this.#seed = seed;
    this.#readSeed = readSeed;
    this.#nextWait = cycle(script.waits);
    this.#nextPause = cycle(script.pauses);
  }

  get last(): Script["last"] {
    return this.#script.last;
  }

  async play(stream: YamuxStream): Promise<void> {
    this.#stream = stream;
    stream.handle(this, this.#script.windowBytes);
    for (const size of this.#script.writes) {
      await turns(this.#nextWait());
      if (this.closes > 0) return;
      if (!stream.write(this.#say(size))) await this.#drained();
    }
    await turns(this.#nextWait());
    if (this.closes > 0) return;
    if (this.last === "end") stream.end();
    else if (this.last === "end with bytes") stream.end(this.#say(5000));
    else stream[this.last]();
  }

  onData(chunk: Buffer): boolean {
    this.#whileOpen("data");
    if (this.#isPaused) this.faults.push("data while paused");
    if (!chunk.equals(pattern(this.#readSeed, this.read, chunk.length))) this.faults.push("other bytes");
    this.read += chunk.length;
    if (!this.#nextPause()) return true;
    this.#isPaused = true;
    void turns(this.#nextWait()).then(() => {
      this.#isPaused = false;
      this.#stream?.resume();
    });
    return false;
  }

  onEnd(): void {
    this.#whileOpen("an end");
    this.ends += 1;
  }

  onDrain(): void {
    this.#whileOpen("a drain");
    if (this.#onDrain === undefined) this.faults.push("a drain that nobody waits for");
    this.#onDrain?.();
  }

  onClose(failure: Error | null): void {
    this.#whileOpen("a close");
    this.closes += 1;
    this.failure = failure;
    this.#onDrain?.();
    this.tellOver();
  }

  #say(size: number): Buffer {
    const bytes = pattern(this.#seed, this.written, size);
    this.written += size;
    return bytes;
  }

  #drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#onDrain = () => {
        this.#onDrain = undefined;
        resolve();
      };
    });
  }

  #whileOpen(what: string): void {
    if (this.closes > 0) this.faults.push(`${what} after the close`);
  }
}

const script: fc.Arbitrary<Script> = fc.record({
  writes: fc.array(fc.oneof(fc.integer({ min: 1, max: 200 }), fc.integer({ min: 1, max: 400_000 })), { maxLength: 8 }),
  waits: fc.array(fc.nat({ max: 4 }), { minLength: 1, maxLength: 4 }),
  pauses: fc.array(fc.boolean(), { minLength: 1, maxLength: 4 }),
  last: fc.constantFrom("end", "end", "end with bytes", "reset", "resetWhenSent"),
  windowBytes: fc.constantFrom(256 * 1024, 300 * 1024, 1024 * 1024),
});

const wire = fc
  .array(
    fc.record({
      bytes: fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 5000, max: 100_000 })),
      turns: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.nat({ max: 5 })),
    }),
    { minLength: 1, maxLength: 6 },
  )
  .filter((pieces) => pieces.some(({ bytes }) => bytes >= 5000));

type Pair = readonly [opener: Actor, accepter: Actor | undefined];

/** Plays all streams to their end. @returns the pairs, and what was wrong on the way */
async function play(scripts: readonly (readonly [Script, Script])[], passing: CheckedWire): Promise<readonly Pair[]> {
  const actors = scripts.map(([opens, accepts], at) => {
    const [says, answers] = [2 * at + 1, 2 * at + 2];
    return { opener: new Actor(opens, says, answers), accepter: new Actor(accepts, answers, says), isMet: false };
  });
  const reasons: (Error | undefined)[] = [];
  const plays: Promise<void>[] = [];
  const accepting = new YamuxSession({
    clock: CLOCK,
    socket: passing.accepter,
    onStream: (stream) => {
      const met = actors[(stream.id - 1) / 2];
      if (met === undefined || met.isMet) throw new Error("a stream that nobody opened");
      met.isMet = true;
      plays.push(met.accepter.play(stream));
    },
    onClose: (reason) => void reasons.push(reason),
  });
  const opening = new YamuxSession({
    clock: CLOCK,
    socket: passing.opener,
    onClose: (reason) => void reasons.push(reason),
  });
  for (const { opener } of actors) plays.push(opener.play(opening.open()));
  await Promise.all(actors.map(({ opener }) => opener.over));
  // What was opened has arrived before the answer to a later ping.
  await new Promise<void>((resolve) => opening.ping(resolve));
  await Promise.all(actors.filter(({ isMet }) => isMet).map(({ accepter }) => accepter.over));
  await Promise.all(plays);
  opening.end();
  await expect.poll(() => [opening.isClosed, accepting.isClosed]).toEqual([true, true]);
  expect(reasons).toEqual([undefined, undefined]);
  return actors.map(({ opener, accepter, isMet }) => [opener, isMet ? accepter : undefined]);
}

const says = (actor: Actor): boolean => actor.last.startsWith("end");

function check([opener, accepter]: Pair): void {
  for (const actor of [opener, accepter]) {
    if (actor === undefined) continue;
    expect(actor.faults).toEqual([]);
    expect(actor.closes).toBe(1);
    expect(actor.ends).toBeLessThanOrEqual(1);
  }
  if (accepter === undefined) {
    // Reset before anything of it had left.
    expect([opener.read, opener.failure]).toEqual([0, null]);
    return;
  }
  expect(opener.read).toBeLessThanOrEqual(accepter.written);
  expect(accepter.read).toBeLessThanOrEqual(opener.written);
  if (says(opener) && says(accepter)) {
    expect([opener.failure, accepter.failure, opener.ends, accepter.ends]).toEqual([null, null, 1, 1]);
    expect([opener.read, accepter.read]).toEqual([accepter.written, opener.written]);
  } else if (says(opener)) {
    // The accepting side has broken off: whatever it had sent is read first.
    expect([opener.ends, opener.failure?.message]).toEqual([0, "the other side broke off"]);
    if (accepter.last === "resetWhenSent") expect(opener.read).toBe(accepter.written);
  } else if (opener.ends === 0) expect(opener.failure === null || !says(accepter)).toBe(true);
}

test("however two sides send and read, all data arrives in order and within its window, and each stream ends once", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(script, script), { minLength: 1, maxLength: 5 }),
      wire,
      async (scripts, pieces) => {
        const passing = new CheckedWire(cycle(pieces));
        const pairs = await play(scripts, passing);
        expect(passing.faults).toEqual([]);
        for (const pair of pairs) check(pair);
      },
    ),
    { numRuns: 60, timeout: 20_000, endOnFailure: true },
  );
});
