import { expect, vi } from "vitest";
import type { IncomingCall, IncomingCallHandler } from "./tunnel-call.ts";
import {
  type CallerCall,
  type CallerHandler,
  type CallerRequest,
  TestAnswerer,
  TestCaller,
} from "./tunnel-caller.fixture.ts";

/** A tunnel over a real connection, including the caller's side. */
export interface TunnelHarness {
  /** Never calls back synchronously. */
  open(request: CallerRequest, handler: CallerHandler): CallerCall;
  /** Drops the connection abruptly. */
  lose(): void;
  close(): Promise<void>;
}

export type OpenTunnel = (handler: IncomingCallHandler) => Promise<TunnelHarness>;

/** Calls the workload `engine` by default. */
export function callThrough(tunnel: Pick<TunnelHarness, "open">, request: Partial<CallerRequest> = {}): TestCaller {
  const whole = { workload: "engine", kind: "no-body", method: "GET", path: "/", headers: {}, ...request } as const;
  return new TestCaller((handler) => tunnel.open(whole, handler));
}

/** The tunnel of one test. */
export class TunnelStage {
  answer: IncomingCallHandler = () => undefined;
  #tunnel: TunnelHarness | undefined;
  #answerers: TestAnswerer[] = [];
  /** Waiters for the next call, in order: calls arrive in the order in which they were made. */
  #arrivals: ((call: IncomingCall) => void)[] = [];

  reset(tunnel: TunnelHarness): void {
    this.#tunnel = tunnel;
    this.#answerers = [];
    this.#arrivals = [];
    this.answer = (call) => {
      const arrive = this.#arrivals.shift();
      if (arrive === undefined) this.#answerers.push(new TestAnswerer(call));
      else arrive(call);
    };
  }

  close(): Promise<void> {
    return this.#open.close();
  }

  lose(): void {
    this.#open.lose();
  }

  call(request: Partial<CallerRequest> = {}): TestCaller {
    return callThrough(this.#open, request);
  }

  /** A call that arrived at the other side. */
  async begin(request: Partial<CallerRequest> = {}): Promise<[TestCaller, TestAnswerer]> {
    const before = this.#answerers.length;
    const caller = this.call(request);
    await vi.waitFor(() => expect(this.#answerers.length).toBe(before + 1));
    const answerer = this.#answerers[before];
    if (answerer === undefined) throw new Error("no call");
    return [caller, answerer];
  }

  /** A call that is not handled yet. */
  async arrive(request: Partial<CallerRequest> = {}): Promise<[TestCaller, IncomingCall]> {
    const { promise, resolve } = Promise.withResolvers<IncomingCall>();
    this.#arrivals.push(resolve);
    return [this.call(request), await promise];
  }

  /** Makes another complete call. */
  async ask(): Promise<void> {
    const [caller, { call }] = await this.begin();
    call.respond(200, {});
    call.end(Buffer.from("another"));
    await settled(caller, "whole");
    expect(caller.body.toString()).toBe("another");
  }

  get #open(): TunnelHarness {
    if (this.#tunnel === undefined) throw new Error("no tunnel");
    return this.#tunnel;
  }
}

/** Waits without polling: a hundred polling callers would starve the tunnel. */
export async function settled(caller: TestCaller, state: "whole" | "failed"): Promise<void> {
  expect(await caller.ended).toBe(state);
}

export async function closed(answerer: TestAnswerer): Promise<void> {
  await vi.waitFor(() => expect(answerer.closes).toBe(1));
}

/** @returns the value once it no longer changes */
export async function stillness(look: () => number): Promise<number> {
  let before = Number.NaN;
  const same = (): boolean => {
    const now = look();
    const still = now === before && now > 0;
    before = now;
    return still;
  };
  await expect.poll(same, { interval: 100, timeout: 20_000 }).toBe(true);
  return before;
}
