import { describe, expect, test } from "vitest";
import { BREAKS, FAILS, HELLO, NEVER_ENDS, REFUSED } from "../support/scripted-model.ts";
import { WAYS } from "../support/two-dialects.ts";
import { ASK_TWICE, describeClient, expectLeft, useStage, WEATHER } from "./support.ts";

describeClient("@langchain/openai", async () => {
  const { ChatOpenAI } = await import("@langchain/openai");
  const { HumanMessage, ToolMessage } = await import("@langchain/core/messages");
  const stage = useStage();

  describe.each(WAYS)("$dialect, $way", ({ dialect, model }) => {
    const chat = (rest: object = {}) =>
      new ChatOpenAI({
        model,
        apiKey: stage.key,
        useResponsesApi: dialect === "responses",
        maxRetries: 0,
        configuration: { baseURL: stage.baseUrl },
        ...rest,
      });
    const read = async (prompt: string): Promise<string> => {
      let text = "";
      for await (const piece of await chat().stream(prompt)) text += piece.text;
      return text;
    };

    test("returns a complete response with its usage", async () => {
      const answer = await chat().invoke("Hi");
      expect(answer.text).toBe(HELLO);
      expect(answer.usage_metadata).toMatchObject({ input_tokens: 7, output_tokens: 6 });
    });

    test("streams a response", async () => {
      expect(await read("Hi")).toBe(HELLO);
    });

    test("runs parallel tool calls and the turn after them", async () => {
      const withTools = chat().bindTools([{ type: "function", function: WEATHER }]);
      const question = new HumanMessage(ASK_TWICE);
      const called = await withTools.invoke([question]);
      expect(called.tool_calls?.map(({ args }) => args)).toEqual([{ city: "Paris" }, { city: "Tokyo" }]);
      const results = (called.tool_calls ?? []).map(
        ({ id = "" }) => new ToolMessage({ content: "sunny", tool_call_id: id }),
      );
      const after = await withTools.invoke([question, called, ...results]);
      expect(after.text).toBe("The tool says: sunny");
    });

    test("returns an object of a given schema", async () => {
      const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
      const structured = chat().withStructuredOutput({ title: "place", ...schema }, { method: "jsonSchema" });
      expect(await structured.invoke("Hi")).toEqual({ city: "Paris" });
    });

    test("throws when a response fails or is cut off", async () => {
      await expect(read(FAILS)).rejects.toThrow();
      await expect(read(BREAKS)).rejects.toThrow();
    });

    test("stops the engine when a call is aborted", async () => {
      const before = stage.upstream.left;
      const leave = new AbortController();
      const reading = async (): Promise<void> => {
        for await (const piece of await chat().stream(NEVER_ENDS, { signal: leave.signal })) {
          if (piece.text !== "") leave.abort();
        }
      };
      await reading().catch(() => undefined);
      await expectLeft(stage, before);
    });

    test("reports the status and message of a refusal", async () => {
      await expect(chat().invoke(REFUSED)).rejects.toMatchObject({
        status: 400,
        message: expect.stringContaining("The model refuses this.") as string,
      });
    });
  });
});
