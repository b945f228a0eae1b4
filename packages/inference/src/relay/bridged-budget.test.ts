import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CHAT, HostStage } from "../host/host-stage.fixture.ts";
import type { ScriptedUpstream } from "../testing/scripted-upstream.ts";
import { WHOLE } from "./bridged.fixture.ts";

const BUDGET = 100_000;

let stage: HostStage;
let upstream: ScriptedUpstream;
beforeEach(async () => {
  stage = new HostStage();
  upstream = stage.place("one", undefined, { protocols: ["responses"] });
  stage.place("two", undefined, { protocols: ["responses"], rank: 1 });
  await stage.open({ limits: { maxBufferedBytes: BUDGET } });
});
afterEach(() => stage.close());

const idle = { callsInFlight: 0, bufferedBytes: 0 };

test("a response buffered for conversion counts against the host's memory budget until it is sent", async () => {
  const answer = stage.chat();
  await vi.waitFor(() => expect(upstream.calls).toHaveLength(1));
  const [far] = upstream.calls;
  far?.respond(200, { "content-type": "application/json" });
  far?.write(" ".repeat(50_000));
  expect(stage.host?.load.bufferedBytes).toBeGreaterThan(50_000);
  far?.write(JSON.stringify(WHOLE.responses));
  far?.end();
  expect((await answer).status).toBe(200);
  await vi.waitFor(() => expect(stage.host?.load).toEqual(idle));
});

test.each([false, true])(
  "beyond the memory budget the call is rejected, without another attempt (stream: %s)",
  async (stream) => {
    const answer = stage.chat({ ...CHAT, stream });
    await vi.waitFor(() => expect(upstream.calls).toHaveLength(1));
    const [far] = upstream.calls;
    far?.respond(200, { "content-type": stream ? "text/event-stream" : "application/json" });
    far?.write(`data: ${" ".repeat(BUDGET)}`);
    const refused = await answer;
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({ error: { code: "overloaded" } });
    expect(far?.closed).toBe(true);
    expect(stage.ends).toMatchObject([{ outcome: "overloaded", attempts: 1 }]);
    await vi.waitFor(() => expect(stage.host?.load).toEqual(idle));
  },
);
