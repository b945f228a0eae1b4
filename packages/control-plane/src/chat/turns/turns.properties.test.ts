import type { ScriptedCall } from "@fairlead/inference/testing/scripted-upstream";
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { begin, bodyOf, ChatStage, finish, MODEL, wordChunk } from "../chat-stage.fixture.ts";
import { SessionLocks } from "../sessions/session-locks.ts";
import type { TurnLog } from "../store/turn-log.ts";
import type { TurnCall, TurnCaller } from "./turn-call.ts";
import { TurnService, type TurnServiceDeps } from "./turn-service.ts";

/**
 * Random histories of turns, repeats, stops, breaks, crashes and `/new` against a model of what history must be: what a person was
 * told is there, once, in order, and nothing else; and it is what the next model is given.
 */

/** How a turn comes to its end. `early` is before the first word. */
const ENDINGS = [
  "whole",
  "refused",
  "broken",
  "left",
  "left early",
  "stopped",
  "stopped early",
  "crashed",
  "crashed early",
] as const;
type Ending = (typeof ENDINGS)[number];

type Step =
  | { readonly do: "ask"; readonly session: number; readonly text: string; readonly ending: Ending }
  | { readonly do: "repeat"; readonly session: number; readonly ending: Ending }
  | { readonly do: "regenerate"; readonly session: number; readonly ending: Ending }
  | { readonly do: "new"; readonly session: number }
  | { readonly do: "wait"; readonly seconds: number };

const session = fc.nat({ max: 1 });
const ending = fc.constantFrom(...ENDINGS);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("ask" as const),
      session,
      text: fc.constantFrom("a", "b", "/new?"),
      ending,
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("repeat" as const), session, ending }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("regenerate" as const), session, ending }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("new" as const), session }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("wait" as const), seconds: fc.constantFrom(5, 61) }) },
);

interface ModelTurn {
  readonly question: string;
  /** Null: none. */
  readonly answer: string | null;
  readonly ending: Ending;
  readonly endedAt: number;
}

/** Whether the same question takes the last one's place. */
function isRepeat(last: ModelTurn | undefined, question: string, now: number): boolean {
  if (last?.question !== question) return false;
  if (last.answer === null) return true;
  if (last.ending === "whole" || last.ending === "stopped") return false;
  return last.ending !== "left" || now - last.endedAt <= 60_000;
}

const told = (turns: readonly ModelTurn[]): string[] =>
  turns.flatMap(({ question, answer, ending: how }) => [
    `user: ${question}`,
    ...(answer === null ? [] : [`assistant: ${answer}${how === "whole" ? "" : " (incomplete)"}`]),
  ]);

/** The log of a process that can be killed: from then on nothing of it reaches the store. */
class MortalLog implements Pick<TurnLog, "find" | "begin" | "flush" | "finish" | "lastTurn"> {
  readonly #log: TurnLog;
  dead = false;

  constructor(log: TurnLog) {
    this.#log = log;
  }

  readonly #alive = (): TurnLog => {
    if (this.dead) throw new Error("this process was killed");
    return this.#log;
  };
  find = async (...args: Parameters<TurnLog["find"]>) => await this.#alive().find(...args);
  begin = async (...args: Parameters<TurnLog["begin"]>) => await this.#alive().begin(...args);
  flush = async (...args: Parameters<TurnLog["flush"]>) => await this.#alive().flush(...args);
  finish = async (...args: Parameters<TurnLog["finish"]>) => await this.#alive().finish(...args);
  lastTurn = async (...args: Parameters<TurnLog["lastTurn"]>) => await this.#alive().lastTurn(...args);
}

class Caller implements TurnCaller {
  readonly streams = true;
  readonly leaving = new AbortController();
  readonly gone = this.leaving.signal;
  session = "";
  text = "";

  listen(): void {}
  carry(): void {}
  begin(): void {}
  end(): void {}
  break(): void {}

  tellSession(sessionId: string): void {
    this.session = sessionId;
  }

  write(bytes: Buffer): boolean {
    this.text += bytes.toString("utf8");
    return true;
  }
}

/** The service under test beside its model. */
class World {
  readonly stage = new ChatStage();
  readonly #sessions: { id: string; turns: ModelTurn[] }[] = [];
  #log: MortalLog | undefined;
  #turns: TurnService | undefined;
  #count = 0;

  async open(): Promise<void> {
    await this.stage.openChat({ host: { limits: { maxAttempts: 1 } } });
    this.#restart();
    for (let count = 0; count < 2; count++) {
      this.#sessions.push({ id: await this.#openSession(""), turns: [] });
      this.stage.clock.advance(11_000);
    }
  }

  async close(): Promise<void> {
    await this.#turns?.close();
    await this.stage.closeChat();
  }

  async take(each: Step): Promise<void> {
    if (each.do === "wait") {
      this.stage.clock.advance(1000 * each.seconds);
      return;
    }
    const at = this.#sessions[each.session];
    if (at === undefined) throw new Error("no such session");
    if (each.do === "new") {
      const before = at.id;
      at.id = await this.#openSession(before);
      at.turns = [];
      expect(at.id).not.toBe(before);
      this.stage.clock.advance(11_000);
    } else if (each.do === "regenerate") {
      const last = at.turns.at(-1);
      if (last === undefined) return;
      await this.#turn(at, { question: last.question, ending: each.ending, again: true });
    } else {
      const question = each.do === "ask" ? each.text : (at.turns.at(-1)?.question ?? "first");
      await this.#turn(at, { question, ending: each.ending, again: false });
    }
    await this.check();
  }

  async check(): Promise<void> {
    for (const { id, turns } of this.#sessions) expect(await this.stage.history(id)).toEqual(told(turns));
  }

  #restart(): void {
    const { stored, host, clock } = this.stage;
    if (stored === undefined || host === undefined) throw new Error("not open");
    this.#log = new MortalLog(stored.turnLog);
    this.#turns = new TurnService({
      ...this.#parts(),
      pipeline: host.pipeline,
      turns: this.#log,
      sessions: stored.chatSessions,
      clock,
    });
  }

  #parts(): Pick<TurnServiceDeps, "models" | "locks" | "counters" | "onLeave" | "flushMs" | "log"> {
    const { counters, models, log } = this.stage;
    return { models, log, counters, locks: new SessionLocks(), onLeave: "cancel", flushMs: 0 };
  }

  async #openSession(from: string): Promise<string> {
    const caller = new Caller();
    const call = this.#call(from, "/new");
    const answer = await this.#turns?.take(call, caller);
    call.ticket.leave();
    expect(answer?.kind).toBe("events");
    return caller.session;
  }

  #call(sessionId: string, text: string): TurnCall {
    const { host } = this.stage;
    if (host === undefined) throw new Error("not open");
    return {
      id: `req_${String(++this.#count).padStart(26, "0")}`,
      scope: { projectId: "prj_1", userId: "usr_1" },
      sessionId: sessionId === "" ? null : sessionId,
      dialect: "responses",
      body: { model: MODEL, messages: [{ role: "user", content: text }] },
      requestHash: text,
      idempotencyKey: null,
      headers: {},
      ticket: host.admission.enter(),
      begunAt: this.stage.clock.monotonic(),
      uploadMs: 0,
    };
  }

  async #turn(
    at: { id: string; turns: ModelTurn[] },
    asked: { readonly question: string; readonly ending: Ending; readonly again: boolean },
  ): Promise<void> {
    const { question, ending: how, again } = asked;
    const answer = `answer ${++this.#count}`;
    const now = this.stage.clock.now();
    if (again || isRepeat(at.turns.at(-1), question, now)) at.turns.pop();
    this.stage.candidates = [];
    const upstream = this.stage.place(`u${this.#count}`);
    const caller = new Caller();
    const call = this.#call(at.id, question);
    const running = again
      ? this.#turns?.regenerate({ ...call, sessionId: at.id }, caller)
      : this.#turns?.take(call, caller);
    const over = Promise.resolve(running).then(
      () => "told",
      (error: unknown) => error,
    );
    await vi.waitFor(() => expect(upstream.calls).toHaveLength(1), { interval: 1 });
    const given = (await bodyOf(upstream))["messages"] as { role: string; content: string }[];
    expect(given.map(({ role, content }) => `${role}: ${content}`)).toEqual([
      ...told(at.turns).map((line) => line.replace(" (incomplete)", "")),
      `user: ${question}`,
    ]);
    const [far] = upstream.calls;
    if (far !== undefined) await this.#end(far, { how, answer, caller, sessionId: at.id });
    if (!how.startsWith("crashed")) await over;
    call.ticket.leave();
    const isSaid = !how.endsWith("early") && how !== "refused";
    at.turns.push({ question, answer: isSaid ? answer : null, ending: how, endedAt: now });
    if (how === "whole") expect(caller.text).toContain("response.completed");
    else expect(caller.text).not.toContain("response.completed");
  }

  async #end(
    far: ScriptedCall,
    { how, answer, caller, sessionId }: { how: Ending; answer: string; caller: Caller; sessionId: string },
  ): Promise<void> {
    if (how === "refused") return far.cut();
    if (!how.endsWith("early")) {
      begin(far);
      far.write(wordChunk(answer));
    }
    if (how === "whole") return finish(far);
    if (how === "broken") return far.cut();
    if (how.startsWith("left")) return caller.leaving.abort();
    if (how.startsWith("stopped")) {
      await this.#turns?.stop({ projectId: "prj_1", userId: "usr_1" }, sessionId);
      return;
    }
    if (how === "crashed")
      await vi.waitFor(async () => expect(await this.#partials()).toContain(answer), { interval: 1 });
    await this.#crash(caller);
  }

  /** Kills the process, and starts another one on the same store. */
  async #crash(caller: Caller): Promise<void> {
    if (this.#log) this.#log.dead = true;
    caller.leaving.abort();
    await this.#turns?.close();
    await this.stage.closeLost();
    this.#restart();
  }

  async #partials(): Promise<string> {
    return JSON.stringify(await this.stage.store?.db.selectFrom("chat_turn").select("partial").execute());
  }
}

test("history is what was said, whatever happens to the turns", { timeout: 60_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 12, maxLength: 24 }), async (steps) => {
      const world = new World();
      await world.open();
      try {
        for (const each of steps) await world.take(each);
      } finally {
        await world.close();
      }
    }),
    { numRuns: 50 },
  );
});
