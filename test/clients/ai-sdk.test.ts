import { describe, expect, test } from "vitest";
import { BREAKS, FAILS, HELLO, NEVER_ENDS, REFUSED, THINKS } from "../support/scripted-model.ts";
import { MODEL } from "../support/two-dialects.ts";
import { ASK_TWICE, ASK_WEATHER, describeClient, expectLeft, lastAsked, useStage } from "./support.ts";

describeClient("the AI SDK", async () => {
  const { APICallError, generateText, Output, isStepCount, streamText, tool } = await import("ai");
  const { createOpenAI } = await import("@ai-sdk/openai");
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  const { createOpenResponses } = await import("@ai-sdk/open-responses");
  const { z } = await import("zod");
  const stage = useStage();

  const openai = (apiKey = stage.key) => createOpenAI({ baseURL: stage.baseUrl, apiKey });
  const compatible = () =>
    createOpenAICompatible({
      name: "fairlead",
      baseURL: stage.baseUrl,
      apiKey: stage.key,
      includeUsage: true,
      supportsStructuredOutputs: true,
    });
  const openResponses = () =>
    createOpenResponses({ name: "fairlead", url: `${stage.baseUrl}/responses`, apiKey: stage.key });

  const providers = [
    ["@ai-sdk/openai, responses", MODEL.responses, MODEL.chat, (model: string) => openai()(model)],
    ["@ai-sdk/openai, chat", MODEL.chat, MODEL.responses, (model: string) => openai().chat(model)],
    ["@ai-sdk/openai-compatible", MODEL.chat, MODEL.responses, (model: string) => compatible()(model)],
    ["@ai-sdk/open-responses", MODEL.responses, MODEL.chat, (model: string) => openResponses()(model)],
  ] as const;
  const cases = providers.flatMap(([name, native, bridged, make]) => [
    { name, way: "native", model: native, make },
    { name, way: "bridged", model: bridged, make },
  ]);

  const weather = () => {
    const cities: string[] = [];
    const get_weather = tool({
      description: "The weather in a city.",
      inputSchema: z.object({ city: z.string() }),
      execute: ({ city }) => {
        cities.push(city);
        return "sunny";
      },
    });
    return { cities, tools: { get_weather } };
  };

  /** All that a stream tells, and the error that it ended with. */
  const watched = async (...[options]: Parameters<typeof streamText>) => {
    let error: unknown = null;
    const result = streamText({
      maxRetries: 0,
      onError: (event) => void (error = event.error),
      ...options,
    } as Parameters<typeof streamText>[0]);
    const parts: string[] = [];
    for await (const part of result.fullStream) parts.push(part.type);
    return { result, parts, error };
  };

  describe.each(cases)("$name, $way", ({ name, model, make }) => {
    test("returns a complete response with its usage", async () => {
      const { text, finishReason, usage } = await generateText({ model: make(model), prompt: "Hi", maxRetries: 0 });
      expect({ text, finishReason }).toEqual({ text: HELLO, finishReason: "stop" });
      expect(usage).toMatchObject({ inputTokens: 7, outputTokens: 6 });
    });

    test("streams a response with its usage, reasoning separate from text", async () => {
      const { result, parts, error } = await watched({ model: make(model), prompt: THINKS });
      expect(error).toBeNull();
      expect(await result.text).toBe(HELLO);
      expect(await result.finishReason).toBe("stop");
      expect((await result.usage).inputTokens).toBe(7);
      // The chat half of OpenAI's own provider knows no thinking.
      if (name !== "@ai-sdk/openai, chat") expect(parts).toContain("reasoning-delta");
    });

    test("runs parallel tool calls and the turn after them without any settings", async () => {
      const { cities, tools } = weather();
      const ask = { model: make(model), prompt: ASK_TWICE, tools, stopWhen: isStepCount(3), maxRetries: 0 };
      const whole = await generateText(ask);
      expect(whole.text).toBe("The tool says: sunny");
      expect(whole.steps).toHaveLength(2);
      const { result, error } = await watched(ask);
      expect(error).toBeNull();
      expect(await result.text).toBe("The tool says: sunny");
      expect(cities).toEqual(["Paris", "Tokyo", "Paris", "Tokyo"]);
    });

    test("runs a second turn that repeats the first", async () => {
      const question = { role: "user" as const, content: "Hi" };
      const { response } = await generateText({ model: make(model), messages: [question], maxRetries: 0 });
      const messages = [question, ...response.messages, { role: "user" as const, content: ASK_WEATHER }];
      const { text } = await generateText({ model: make(model), messages, maxRetries: 0 });
      expect(text).toBe(HELLO);
      // Whoever answers must have got the first answer, however the client told it.
      if (model === MODEL.chat) expect(JSON.stringify(lastAsked(stage).body)).toContain(HELLO);
    });

    test("returns an object of a given schema", async () => {
      const output = Output.object({ schema: z.object({ city: z.string() }) });
      const result = await generateText({ model: make(model), prompt: "Hi", output, maxRetries: 0 });
      expect(result.output).toEqual({ city: "Paris" });
    });

    test("reports a response that reaches a token limit", async () => {
      const result = await generateText({ model: make(model), prompt: "Hi", maxOutputTokens: 1, maxRetries: 0 });
      expect(result).toMatchObject({ text: "Hello ", finishReason: "length" });
    });

    test.each([BREAKS, FAILS])("ends in an error if a response is cut off or fails: %s", async (prompt) => {
      const { result, parts, error } = await watched({ model: make(model), prompt });
      if (name === "@ai-sdk/open-responses") {
        // It throws at nothing that an event tells.
        expect(await result.finishReason).toBe("error");
      } else {
        expect(parts).toContain("error");
        expect(error).not.toBeNull();
      }
    });

    test("stops the engine when a call is aborted", async () => {
      const before = stage.upstream.left;
      const leave = new AbortController();
      const result = streamText({ model: make(model), prompt: NEVER_ENDS, maxRetries: 0, abortSignal: leave.signal });
      for await (const part of result.fullStream) if (part.type === "text-delta") leave.abort();
      await expectLeft(stage, before);
    });

    test("reports the status and message of a refusal and does not retry it", async () => {
      const refused: unknown = await generateText({ model: make(model), prompt: REFUSED }).catch(
        (error: unknown) => error,
      );
      expect(APICallError.isInstance(refused) && refused).toMatchObject({
        statusCode: 400,
        isRetryable: false,
        responseBody: expect.stringContaining("The model refuses this.") as string,
      });
      // It reads only errors whose `param` and `code` are texts; OpenAI's may be null.
      if (name !== "@ai-sdk/open-responses") expect(refused).toHaveProperty("message", "The model refuses this.");
    });
  });

  test("names the setting that helps when it refers to an item that is no longer known", async () => {
    const assistant = {
      role: "assistant" as const,
      content: [{ type: "text" as const, text: "Yes.", providerOptions: { openai: { itemId: "msg_gone" } } }],
    };
    const messages = [assistant, { role: "user" as const, content: "Why?" }];
    const model = openai()(MODEL.chat);
    await expect(generateText({ model, messages, maxRetries: 0 })).rejects.toThrow("store: false");
    const whole = { openai: { store: false } };
    expect((await generateText({ model, messages, maxRetries: 0, providerOptions: whole })).text).toBe(HELLO);
  });

  test("reports a wrong key as such", async () => {
    const wrong = generateText({ model: openai("flk_wrong")(MODEL.chat), prompt: "Hi", maxRetries: 0 });
    await expect(wrong).rejects.toMatchObject({ statusCode: 401 });
  });
});
