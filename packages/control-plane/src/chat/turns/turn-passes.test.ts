import { UPSTREAM_FRAMES } from "@fairlead/inference/relay/bridged.fixture";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import type * as Stage from "../chat-stage.fixture.ts";
import type { TurnDialect } from "../items/turn-dialect.ts";

const COUNTED = [
  "@fairlead/dialects/json/exact-json",
  "@fairlead/dialects/calls/call-scan",
  "@fairlead/dialects/events/event-splitter",
];
const NONE = { bodies: 0, scans: 0, cutBytes: 0, cutEvents: 0, parsedEvents: 0 };
/** What one turn does with its body and its upstream's events, counted where it is done. */
const passes = { ...NONE };

/** The module of the stage, and below it the modules that count. */
let fixture: typeof Stage;
beforeAll(async () => {
  vi.doMock(import("@fairlead/dialects/json/exact-json"), async (original) => {
    const real = await original();
    const parseExact: typeof real.parseExact = (json) => {
      if (typeof json === "string") passes.parsedEvents++;
      else passes.bodies++;
      return real.parseExact(json);
    };
    return { ...real, parseExact };
  });

  vi.doMock(import("@fairlead/dialects/calls/call-scan"), async (original) => {
    const real = await original();
    const scanCall: typeof real.scanCall = (body, dialect) => {
      passes.scans++;
      return real.scanCall(body, dialect);
    };
    return { ...real, scanCall };
  });

  vi.doMock(import("@fairlead/dialects/events/event-splitter"), async (original) => {
    const real = await original();
    class EventSplitter extends real.EventSplitter {
      override push(chunk: Buffer): void {
        passes.cutBytes += chunk.length;
        super.push(chunk);
      }
    }
    const eventEnds: typeof real.eventEnds = (bytes) => {
      const ends = real.eventEnds(bytes);
      passes.cutEvents += ends.length;
      return ends;
    };
    return { ...real, EventSplitter, eventEnds };
  });
  // Test files share their modules, so that others have loaded these before.
  vi.resetModules();
  fixture = await import("../chat-stage.fixture.ts");
});
afterAll(() => {
  for (const path of COUNTED) vi.doUnmock(path);
  vi.resetModules();
});

let stage: Stage.ChatStage;
beforeEach(async () => {
  stage = new fixture.ChatStage();
  await stage.openChat();
});
afterEach(() => stage.closeChat());

const turns: Readonly<Record<TurnDialect, (session: string | null) => Promise<Stage.Told>>> = {
  chat: (session) => stage.sayChat("And then?", { session, body: { stream: true } }),
  responses: (session) => stage.say("And then?", { session }),
};

describe.each([
  ["chat", "chat"],
  ["chat", "responses"],
  ["responses", "chat"],
  ["responses", "responses"],
] as const)("a turn in the %s dialect on an upstream that speaks %s", (dialect, spoken) => {
  const frames = UPSTREAM_FRAMES[spoken];

  test("parses its body once, resolves its model once, and splits and parses each event once", async () => {
    stage.place(
      "a",
      (far) => {
        fixture.begin(far);
        for (const frame of frames) far.write(frame);
        far.end();
      },
      { protocols: [spoken] },
    );
    const { session } = await stage.say("Once upon a time");
    const resolve = vi.spyOn(stage.models, "resolve");
    Object.assign(passes, NONE);
    const told = await turns[dialect](session);
    expect(told.status).toBe(200);
    expect(told.events.at(-1)).toBe("[DONE]");
    expect(resolve).toHaveBeenCalledOnce();
    expect(passes).toEqual({
      bodies: 1,
      scans: 0,
      cutBytes: Buffer.byteLength(frames.join("")),
      cutEvents: frames.length,
      parsedEvents: frames.filter((frame) => !frame.includes("[DONE]")).length,
    });
  });
});
