import { describe, expect, test } from "vitest";
import { BREAKS, FAILS, HELLO, NEVER_ENDS, REFUSED } from "../support/scripted-model.ts";
import { WAYS } from "../support/two-dialects.ts";
import { ASK_TWICE, describeClient, expectLeft, useStage } from "./support.ts";

describeClient("@openai/agents", async () => {
  const { Agent, OpenAIProvider, Runner, tool, MemorySession } = await import("@openai/agents");
  const { default: OpenAI } = await import("openai7");
  const { z } = await import("zod");
  const stage = useStage();

  describe.each(WAYS)("$dialect, $way", ({ dialect, model }) => {
    const cities: string[] = [];
    const get_weather = tool({
      name: "get_weather",
      description: "The weather in a city.",
      parameters: z.object({ city: z.string() }),
      execute: ({ city }) => {
        cities.push(city);
        return "sunny";
      },
    });
    const agent = () => new Agent({ name: "helper", instructions: "Be brief.", model, tools: [get_weather] });
    const runner = () => {
      // Its own copy of the client differs in nothing that is used.
      const openAIClient = new OpenAI({ baseURL: stage.baseUrl, apiKey: stage.key, maxRetries: 0 }) as never;
      // Traces would go to the vendor.
      return new Runner({
        modelProvider: new OpenAIProvider({ openAIClient, useResponses: dialect === "responses" }),
        tracingDisabled: true,
      });
    };

    test("returns a complete response", async () => {
      const result = await runner().run(agent(), "Hi");
      expect(result.finalOutput).toBe(HELLO);
      expect(result.rawResponses[0]?.usage.inputTokens).toBe(7);
    });

    test("streams a response", async () => {
      const result = await runner().run(agent(), "Hi", { stream: true });
      let text = "";
      for await (const piece of result.toTextStream()) text += piece;
      await result.completed;
      expect(text).toBe(HELLO);
    });

    test("runs parallel tool calls and the turn after them", async () => {
      cities.length = 0;
      const whole = await runner().run(agent(), ASK_TWICE);
      expect(whole.finalOutput).toBe("The tool says: sunny");
      const streamed = await runner().run(agent(), ASK_TWICE, { stream: true });
      await streamed.completed;
      expect(streamed.finalOutput).toBe("The tool says: sunny");
      expect(cities).toEqual(["Paris", "Tokyo", "Paris", "Tokyo"]);
    });

    test("runs a session of two turns with tool calls", async () => {
      const session = new MemorySession();
      await runner().run(agent(), ASK_TWICE, { session });
      const second = await runner().run(agent(), "Hi", { session });
      expect(second.finalOutput).toBe(HELLO);
      expect(JSON.stringify(stage.upstream.asked.at(-1)?.body)).toContain("The tool says: sunny");
    });

    test.each([BREAKS, FAILS])("throws when a response is cut off or fails: %s", async (text) => {
      const result = await runner().run(agent(), text, { stream: true });
      await expect(result.completed).rejects.toThrow();
    });

    test("stops the engine when a run is aborted", async () => {
      const before = stage.upstream.left;
      const leave = new AbortController();
      const result = await runner().run(agent(), NEVER_ENDS, { stream: true, signal: leave.signal });
      for await (const event of result) if (event.type === "raw_model_stream_event") leave.abort();
      await result.completed.catch(() => undefined);
      await expectLeft(stage, before);
    });

    test("reports the status and message of a refusal", async () => {
      await expect(runner().run(agent(), REFUSED)).rejects.toMatchObject({
        status: 400,
        message: expect.stringContaining("The model refuses this.") as string,
      });
    });
  });
});
