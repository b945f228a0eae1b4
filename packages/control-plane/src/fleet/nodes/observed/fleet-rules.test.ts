import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type FleetRules,
  type FleetState,
  firstFleetState,
  judgeFleet,
  RETURN_MS,
  STALL_MS,
  type WatchedNode,
} from "./fleet-rules.ts";

const RULES: FleetRules = { missedBeats: 3, brakeShare: 0.5, brakeNodes: 3, brakeMs: 600_000 };
const INTERVAL_MS = 10_000;
const GRACE_MS = 3 * INTERVAL_MS;
const TICK_MS = 2000;

/** A fleet whose daemons are heard as long as they are not silenced, looked at every two seconds. */
class Fleet {
  now = 0;
  state: FleetState = firstFleetState(0);
  readonly silenced = new Set<number>();
  readonly lost: string[] = [];
  /** Of each that was lost: for how long it had not been heard. */
  readonly silences: number[] = [];
  /** By the rules' own account. */
  brakes = 0;
  readonly #heardAt: (number | null)[];
  /** When each daemon sends its next heartbeat. */
  readonly #nextAt: number[];
  readonly #rules: FleetRules;

  constructor(size: number, rules = RULES) {
    this.#heardAt = Array.from({ length: size }, () => null);
    this.#nextAt = Array.from({ length: size }, (_, n) => (n * TICK_MS) % INTERVAL_MS);
    this.#rules = rules;
  }

  get braked(): boolean {
    return this.state.brakedAt !== null;
  }

  /** Lets time pass. Heartbeats come at each daemon's own moment of the interval. */
  pass(milliseconds: number): void {
    for (const end = this.now + milliseconds; this.now < end; ) {
      this.now += TICK_MS;
      for (const n of this.#nextAt.keys()) this.#beat(n);
      this.look();
    }
  }

  #beat(n: number): void {
    const next = this.#nextAt[n] ?? 0;
    if (next > this.now) return;
    this.#nextAt[n] = Math.max(this.now, next + INTERVAL_MS);
    if (!this.silenced.has(n)) this.#heardAt[n] = this.now;
  }

  look(): void {
    const nodes = this.#heardAt
      .map((heardAt, n): WatchedNode => ({ id: `nod_${n}`, heardAt, intervalMs: INTERVAL_MS }))
      .filter(({ id }) => !this.lost.includes(id));
    const wasBraked = this.braked;
    const judgement = judgeFleet(this.state, nodes, { now: this.now, rules: this.#rules });
    this.state = judgement.state;
    if (this.braked && !wasBraked) this.brakes += 1;
    for (const node of nodes) {
      if (judgement.lost.includes(node.id)) this.silences.push(this.now - (node.heardAt ?? Number.NEGATIVE_INFINITY));
    }
    this.lost.push(...judgement.lost);
  }

  silence(from: number, to: number): void {
    for (let n = from; n < to; n++) this.silenced.add(n);
  }
}

describe("lost nodes", () => {
  test.each([1, 2])("a fleet of %d is judged node by node, however many of its nodes are silent", (size) => {
    const fleet = new Fleet(size);
    fleet.pass(60_000);
    fleet.silence(0, size);
    fleet.pass(GRACE_MS - INTERVAL_MS);
    expect(fleet.lost).toEqual([]);
    fleet.pass(2 * INTERVAL_MS);
    expect(fleet.lost).toHaveLength(size);
    expect(fleet.brakes).toBe(0);
  });

  test("a few nodes of many are lost one by one, without the brake", () => {
    const fleet = new Fleet(10);
    fleet.pass(60_000);
    fleet.silence(0, 4);
    fleet.pass(GRACE_MS + INTERVAL_MS);
    expect(fleet.lost.toSorted()).toEqual(["nod_0", "nod_1", "nod_2", "nod_3"]);
    expect(fleet.brakes).toBe(0);
  });

  test("after a server start, no node is lost and the brake is off until a whole fleet has had time to reconnect", () => {
    const fleet = new Fleet(10);
    fleet.silence(0, 10);
    fleet.pass(RETURN_MS - INTERVAL_MS);
    expect([fleet.lost, fleet.brakes]).toEqual([[], 0]);
    fleet.silenced.clear();
    fleet.silence(0, 1);
    fleet.pass(INTERVAL_MS + TICK_MS);
    expect([fleet.lost, fleet.brakes]).toEqual([["nod_0"], 0]);
  });

  test("a daemon with a longer heartbeat interval gets a longer grace period", () => {
    const slow: WatchedNode = { id: "slow", heardAt: 0, intervalMs: 100_000 };
    const fast: WatchedNode = { id: "fast", heardAt: 0, intervalMs: INTERVAL_MS };
    const state = { judgedAt: 40_000, graceFrom: -RETURN_MS, brakedAt: null };
    expect(judgeFleet(state, [slow, fast], { now: 42_000, rules: RULES }).lost).toEqual(["fast"]);
  });
});

describe("the brake", () => {
  test("engages when most nodes go silent at once, although heartbeats are spread over an interval (gpustack#5935)", () => {
    const fleet = new Fleet(1000);
    fleet.pass(200_000);
    fleet.silence(0, 1000);
    fleet.pass(10 * 60_000);
    expect(fleet.lost).toEqual([]);
    expect(fleet.braked).toBe(true);
  });

  test("gives returning nodes the time of a restart once it is released, and then silent nodes are lost", () => {
    const fleet = new Fleet(10);
    fleet.pass(60_000);
    fleet.silence(0, 10);
    fleet.pass(60_000);
    fleet.silenced.clear();
    fleet.silence(0, 4);
    fleet.pass(INTERVAL_MS);
    expect(fleet.braked).toBe(false);
    fleet.pass(RETURN_MS - INTERVAL_MS);
    expect(fleet.lost).toEqual([]);
    fleet.pass(INTERVAL_MS + TICK_MS);
    expect(fleet.lost).toHaveLength(4);
    expect(fleet.brakes).toBe(1);
  });

  test("stays engaged while no node is heard, but only for its time limit while others are", () => {
    const deaf = new Fleet(10);
    const cut = new Fleet(10);
    for (const fleet of [deaf, cut]) fleet.pass(60_000);
    deaf.silence(0, 10);
    cut.silence(0, 7);
    for (const fleet of [deaf, cut]) fleet.pass(RULES.brakeMs);
    expect([deaf.lost, cut.lost]).toEqual([[], []]);
    for (const fleet of [deaf, cut]) fleet.pass(60_000);
    expect(deaf.lost).toEqual([]);
    expect(cut.lost).toHaveLength(7);
  });

  test("gives every node time to reconnect after the server itself stalls", () => {
    const fleet = new Fleet(2);
    fleet.pass(60_000);
    fleet.now += 10 * 60_000;
    fleet.look();
    expect(fleet.lost).toEqual([]);
    fleet.pass(60_000);
    expect([fleet.lost, fleet.brakes]).toEqual([[], 0]);
  });
});

type Happening = "silence" | "voice" | "stall";
const history = fc.array(
  fc.record({
    what: fc.constantFrom<Happening>("silence", "voice", "stall"),
    from: fc.double({ min: 0, max: 1, noNaN: true }),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
    waitMs: fc.integer({ min: 0, max: 200_000 }),
  }),
  { maxLength: 12 },
);

function live(
  fleet: Fleet,
  size: number,
  { what, from, share, waitMs }: { what: Happening; from: number; share: number; waitMs: number },
): void {
  const first = Math.floor(from * size);
  const last = Math.min(size, first + Math.ceil(share * size));
  if (what === "silence") fleet.silence(first, last);
  if (what === "voice") for (let n = first; n < last; n++) fleet.silenced.delete(n);
  if (what === "stall") fleet.now += STALL_MS + 1;
  fleet.pass(waitMs);
}

describe("any history", () => {
  test("never loses a node that was heard within the grace period, or engages the brake in a small fleet", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), history, (size, happenings) => {
        const fleet = new Fleet(size);
        for (const happening of happenings) live(fleet, size, happening);
        for (const silentMs of fleet.silences) expect(silentMs).toBeGreaterThan(GRACE_MS);
        if (size < RULES.brakeNodes) expect(fleet.brakes).toBe(0);
      }),
      { numRuns: 200 },
    );
  });

  test("eventually loses a node that stays silent while others are heard", () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 40 }), history, (size, happenings) => {
        const fleet = new Fleet(size);
        for (const happening of happenings) live(fleet, size, happening);
        fleet.silenced.delete(1);
        fleet.pass(INTERVAL_MS + TICK_MS);
        if (fleet.lost.includes("nod_0") || fleet.lost.includes("nod_1")) return;
        fleet.silenced.add(0);
        fleet.pass(RULES.brakeMs + 2 * RETURN_MS + GRACE_MS);
        expect(fleet.lost).toContain("nod_0");
        expect(fleet.lost).not.toContain("nod_1");
      }),
      { numRuns: 100 },
    );
  });
});
