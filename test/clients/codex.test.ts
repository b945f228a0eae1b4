import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BREAKS, FAILS, HELLO, REFUSED } from "../support/scripted-model.ts";
import { MODEL } from "../support/two-dialects.ts";
import { Codex, type CodexEvent, codexConfig } from "./codex.ts";
import { describeClient, lastAsked, useStage } from "./support.ts";

const said = (events: readonly CodexEvent[]): (string | undefined)[] =>
  events.flatMap(({ item }) => (item?.type === "agent_message" ? [item.text] : []));

describeClient("codex", () => {
  const stage = useStage();

  describe.each([
    ["native", MODEL.responses],
    ["bridged", MODEL.chat],
  ])("headless, %s", (way, model) => {
    let codex: Codex;

    beforeAll(() => {
      codex = new Codex({ key: stage.key, config: codexConfig(stage.baseUrl, model) });
    });
    afterAll(() => codex.remove());

    test("runs a turn, and one that resumes it with its full history", async () => {
      const first = await codex.exec("Say hi");
      expect(first.code).toBe(0);
      expect(said(first.events)).toEqual([HELLO]);
      expect(first.events.at(-1)).toMatchObject({ type: "turn.completed", usage: { input_tokens: 7 } });
      const second = await codex.exec("resume", "--last", "Again");
      expect(said(second.events)).toEqual([HELLO]);
      const asked = JSON.stringify(lastAsked(stage).body);
      for (const text of ["Say hi", HELLO, "Again"]) expect(asked).toContain(text);
      expect(lastAsked(stage).path).toBe(way === "native" ? "/v1/responses" : "/v1/chat/completions");
    });

    test("runs a command that the model requests and returns its result", async () => {
      const { events } = await codex.exec("What is the weather?");
      // The scripted model knows no other words for a text than this.
      expect(events).toContainEqual(
        expect.objectContaining({
          item: expect.objectContaining({ type: "command_execution", exit_code: 127 }) as object,
        }),
      );
      expect(said(events)[0]).toMatch(/^The tool says: .*exited with code 127/s);
      expect(events.at(-1)).toMatchObject({ type: "turn.completed", usage: { input_tokens: 14 } });
    });

    test.each([
      [FAILS, "lost its thread"],
      [BREAKS, "closed the connection too early"],
      [REFUSED, "The model refuses this."],
    ])("reports why a turn failed: %s", async (prompt, reason) => {
      const { events, code } = await codex.exec(prompt);
      expect(code).toBe(1);
      const message = expect.stringContaining(reason) as string;
      expect(events.at(-1)).toMatchObject({ type: "turn.failed", error: { message } });
      expect(said(events)).toEqual([]);
    });
  });
});
