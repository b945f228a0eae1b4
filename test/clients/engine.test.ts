import { afterAll, beforeAll, expect, test } from "vitest";
import { DataPlane, PROJECT_KEY } from "../support/data-plane.ts";
import { DEMO_IMAGE, describeWithDocker, docker, ensureDemoImage, publishedPort } from "../support/docker.ts";
import { waitFor } from "../support/wait-for.ts";
import { Codex, codexConfig } from "./codex.ts";
import { describeClient } from "./support.ts";

const MODEL = "node-1/tinychat-6m";
const QUESTION = "What is the capital of Japan?";
const ANSWER = "The capital of Japan is Tokyo.";

/** The same clients before llama.cpp with a real model, which speaks chat completions: every response is bridged. */
describeWithDocker("a real engine", () => {
  describeClient("with every client", async () => {
    const { default: OpenAI } = await import("openai7");
    const { generateText, Output, streamText } = await import("ai");
    const { createOpenAI } = await import("@ai-sdk/openai");
    const { createOpenResponses } = await import("@ai-sdk/open-responses");
    const { Agent, OpenAIProvider, Runner } = await import("@openai/agents");
    const { ChatOpenAI } = await import("@langchain/openai");
    const { z } = await import("zod");
    let container = "";
    let plane: DataPlane;

    beforeAll(async () => {
      await ensureDemoImage();
      const args = ["--alias", "tinychat-6m", "-np", "2", "-c", "4096", "-t", "1", "--cache-ram", "0"];
      container = await docker("run", "-d", "-p", "127.0.0.1::8080", DEMO_IMAGE, ...args);
      const enginePort = await publishedPort(container, 8080);
      await waitFor(
        "the engine's health",
        60_000,
        async () => (await fetch(`http://127.0.0.1:${enginePort}/health`)).ok,
      );
      plane = new DataPlane({ enginePort });
      plane.target = { ...plane.target, models: ["tinychat-6m"] };
      await plane.start();
    }, 300_000);

    afterAll(async () => {
      await plane.stop();
      if (container) await docker("rm", "-f", container);
    });

    const baseURL = (): string => `${plane.url}/v1`;
    const client = () => new OpenAI({ baseURL: baseURL(), apiKey: PROJECT_KEY, maxRetries: 0 });
    const aiSdk = () => createOpenAI({ baseURL: baseURL(), apiKey: PROJECT_KEY });

    test("serves complete and streamed chat completions to openai", async () => {
      const ask = { model: MODEL, messages: [{ role: "user" as const, content: QUESTION }], temperature: 0 };
      const whole = await client().chat.completions.create(ask);
      expect(whole.choices[0]?.message.content).toBe(ANSWER);
      const streamed = await client().chat.completions.stream(ask).finalChatCompletion();
      expect(streamed.choices[0]?.message.content).toBe(ANSWER);
    });

    test("serves complete and streamed responses with their usage to openai", async () => {
      const ask = { model: MODEL, input: QUESTION, temperature: 0 };
      const whole = await client().responses.create(ask);
      expect(whole).toMatchObject({ status: "completed", output_text: ANSWER, model: MODEL });
      const streamed = await client().responses.stream(ask).finalResponse();
      expect(streamed.output_text).toBe(ANSWER);
      expect(streamed.usage).toMatchObject(whole.usage ?? {});
    });

    test("serves a response cut off by a limit, and one with a given schema, to openai", async () => {
      const cut = await client().responses.create({ model: MODEL, input: QUESTION, max_output_tokens: 2 });
      expect(cut).toMatchObject({ status: "incomplete", incomplete_details: { reason: "max_output_tokens" } });
      const schema = { type: "object", properties: { yes: { type: "boolean" } }, required: ["yes"] };
      const formed = await client().responses.create({
        model: MODEL,
        input: "Is 7 odd?",
        text: { format: { type: "json_schema", name: "answer", schema } },
      });
      expect(JSON.parse(formed.output_text)).toEqual({ yes: expect.any(Boolean) as boolean });
    });

    test("is free for the next call after openai aborts one", async () => {
      const stream = await client().responses.create({ model: MODEL, input: QUESTION, stream: true });
      for await (const event of stream) if (event.type === "response.output_text.delta") break;
      await waitFor("the call to be over", 10_000, () => Promise.resolve(plane.host.load.callsInFlight === 0));
      const next = await client().responses.create({ model: MODEL, input: QUESTION, temperature: 0 });
      expect(next.output_text).toBe(ANSWER);
    });

    test("refuses a history that is too long in its own words (openai)", async () => {
      const refused = client().responses.create({ model: MODEL, input: "word ".repeat(5000) });
      await expect(refused).rejects.toMatchObject({ status: 400, message: expect.stringMatching(/context/) as string });
    });

    test("serves complete, streamed and structured responses to the AI SDK", async () => {
      const model = aiSdk()(MODEL);
      expect((await generateText({ model, prompt: QUESTION, temperature: 0 })).text).toBe(ANSWER);
      expect(await streamText({ model, prompt: QUESTION, temperature: 0 }).text).toBe(ANSWER);
      const output = Output.object({ schema: z.object({ yes: z.boolean() }) });
      const formed = await generateText({ model, prompt: "Is 7 odd?", output });
      expect(formed.output).toEqual({ yes: expect.any(Boolean) as boolean });
      const open = createOpenResponses({ name: "fairlead", url: `${baseURL()}/responses`, apiKey: PROJECT_KEY });
      expect((await generateText({ model: open(MODEL), prompt: QUESTION, temperature: 0 })).text).toBe(ANSWER);
    });

    test("serves a second turn that refers to the first to the AI SDK", async () => {
      const question = { role: "user" as const, content: QUESTION };
      const { response } = await generateText({ model: aiSdk()(MODEL), messages: [question] });
      const messages = [question, ...response.messages, question];
      const second = await generateText({ model: aiSdk()(MODEL), messages, temperature: 0 });
      expect(second.text).not.toBe("");
    });

    test.each([true, false])("serves @openai/agents (responses: %s)", async (useResponses) => {
      const openAIClient = client() as never;
      const runner = new Runner({
        modelProvider: new OpenAIProvider({ openAIClient, useResponses }),
        tracingDisabled: true,
      });
      const agent = new Agent({ name: "helper", model: MODEL, modelSettings: { temperature: 0 } });
      expect((await runner.run(agent, QUESTION)).finalOutput).toBe(ANSWER);
    });

    test.each([true, false])("serves @langchain/openai (responses: %s)", async (useResponsesApi) => {
      const configuration = { baseURL: baseURL() };
      const chat = new ChatOpenAI({
        model: MODEL,
        apiKey: PROJECT_KEY,
        temperature: 0,
        useResponsesApi,
        configuration,
      });
      expect((await chat.invoke(QUESTION)).text).toBe(ANSWER);
    });

    test("tells codex that its instructions alone are too long for this model", async () => {
      const codex = new Codex({ key: PROJECT_KEY, config: codexConfig(baseURL(), MODEL) });
      const { events, code } = await codex.exec(QUESTION);
      codex.remove();
      expect(code).toBe(1);
      const message = expect.stringMatching(/context/) as string;
      expect(events.at(-1)).toMatchObject({ type: "turn.failed", error: { message } });
    });
  });
});
