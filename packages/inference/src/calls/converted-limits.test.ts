import { MAX_CONVERTED_BYTES } from "@fairlead/dialects/calls/relayed-answer";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { CHAT, HostStage } from "../host/host-stage.fixture.ts";
import { WHOLE } from "../relay/bridged.fixture.ts";
import type { ScriptedUpstream } from "../testing/scripted-upstream.ts";

const MIB = 1024 * 1024;

let stage: HostStage;
let upstream: ScriptedUpstream;
beforeEach(async () => {
  stage = new HostStage();
  upstream = stage.place("one", undefined, { protocols: ["responses"] });
  await stage.open({ limits: { maxAttempts: 1 } });
});
afterEach(() => stage.close());

/** What the caller of the chat dialect is told of an upstream that answers this in the other one. */
async function converted(
  body: readonly string[],
  stream = false,
): Promise<{ status: number; text: string; closed: boolean }> {
  const response = stage.chat({ ...CHAT, stream });
  await vi.waitFor(() => expect(upstream.calls).toHaveLength(1));
  const [far] = upstream.calls;
  far?.respond(200, { "content-type": stream ? "text/event-stream" : "application/json" });
  for (const piece of body) if (!far?.closed) far?.write(piece);
  const closed = far?.closed ?? false;
  if (!closed) far?.end();
  const { status, text } = await response.then(async (it) => ({ status: it.status, text: await it.text() }));
  return { status, text, closed };
}

const nested = (levels: number): string => `${"[".repeat(levels)}${"]".repeat(levels)}`;
const failed = { status: 502, text: expect.stringContaining('"code":"upstream_failed"') as unknown };

describe("a response that must be converted", () => {
  test("is rejected once it exceeds 4 MiB, without reading the rest", async () => {
    const piece = `{"usage":${nested(MIB / 2)}}`;
    expect(await converted(Array(30).fill(piece))).toMatchObject({ ...failed, closed: true });
    await vi.waitFor(() => expect(stage.host?.load).toEqual({ callsInFlight: 0, bufferedBytes: 0 }));
  });

  test("is rejected if it is nested too deeply, even within the length limit", async () => {
    for (const levels of [65, MAX_CONVERTED_BYTES / 4]) {
      upstream.calls.splice(0);
      const usage = JSON.stringify(WHOLE.responses).replace(/^\{/, `{"more":${nested(levels)},`);
      expect(await converted([usage])).toMatchObject(failed);
    }
  });

  test("is converted if it stays within the limits for depth and length", async () => {
    const padding = " ".repeat(MAX_CONVERTED_BYTES - 100_000);
    const whole = JSON.stringify(WHOLE.responses).replace(/^\{/, `{"more":${nested(60)},`);
    expect((await converted([padding, whole])).status).toBe(200);
  });

  test("has the same limits for each event of a stream", async () => {
    const created = `data: ${JSON.stringify({ type: "response.created", response: { id: "resp_1" }, more: nested(1) })}\n\n`;
    const deep = `data: {"type":"response.completed","response":${nested(MIB)}}\n\n`;
    const { text } = await converted([created, deep], true);
    expect(text).toContain('"code":"upstream_failed"');
    upstream.calls.splice(0);
    const endless = await converted([created, "data: ", ...Array<string>(30).fill("[".repeat(MIB))], true);
    expect(endless).toMatchObject({
      text: expect.stringContaining('"code":"upstream_failed"') as unknown,
      closed: true,
    });
  });
});
