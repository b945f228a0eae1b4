import type OpenAI7 from "openai7";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { ChatCaller } from "../support/chat-caller.ts";
import { CHAT_MODELS, ChatStage } from "../support/chat-stage.ts";
import { DEMO_IMAGE, describeWithDocker, docker, ensureDemoImage, publishedPort } from "../support/docker.ts";
import { BREAKS, HELLO, RECALL } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { SessionFetch } from "./session-fetch.ts";
import { ASK_WEATHER, describeClient, WEATHER } from "./support.ts";

type Sdk = typeof OpenAI7;

/** What every client says, turn by turn; the last answer needs what was said three turns earlier. */
const TURNS = ["My name is Ada.", "I like roses.", "And tea.", RECALL];
const RECALLED = "My name is Ada. | I like roses. | And tea.";

describeClient("chat sessions", async () => {
  const sdks = {
    "openai 6": (await import("openai6")).default as unknown as Sdk,
    "openai 7": (await import("openai7")).default,
  };
  const { generateText, stepCountIs, streamText, tool } = await import("ai");
  const { createOpenAI } = await import("@ai-sdk/openai");
  const { ChatOpenAI } = await import("@langchain/openai");
  const { z } = await import("zod");

  let stage: ChatStage;
  let ann: ChatCaller;
  let session: SessionFetch;

  beforeAll(async () => {
    stage = await ChatStage.start();
    ann = await stage.newPerson("ann");
  });
  afterAll(() => stage.stop());
  beforeEach(() => {
    session = new SessionFetch();
  });

  /** As SDKs take them. @param path that the SDK's own paths follow. */
  const options = (path: string) => ({
    baseURL: stage.url + path,
    apiKey: ann.identity.token,
    fetch: session.fetch,
    maxRetries: 0,
  });
  const oneSession = (): string => {
    expect(new Set(session.sessions).size).toBe(1);
    return session.session ?? "";
  };

  /** The turns, told by a client one by one, and what they have to leave behind. */
  async function converse(ask: (text: string) => Promise<string>): Promise<void> {
    const answers: string[] = [];
    for (const text of TURNS) answers.push(await ask(text));
    expect(answers).toEqual([HELLO, HELLO, HELLO, RECALLED]);
    const history = await ann.history(oneSession());
    expect(history).toEqual(TURNS.flatMap((text, at) => [`user: ${text}`, `assistant: ${answers[at] ?? ""}`]));
  }

  describe.each(Object.entries(sdks))("%s", (_name, OpenAI) => {
    const client = (path: string, rest: object = {}) =>
      new OpenAI({ ...options(path), defaultHeaders: ann.headers, ...rest });

    describe.each(Object.values(CHAT_MODELS))("with %s", (model) => {
      test("streams responses", async () => {
        await converse(async (input) => {
          let text = "";
          for await (const event of await client("/v1/chat").responses.create({ model, input, stream: true })) {
            if (event.type === "response.output_text.delta") text += event.delta;
          }
          return text;
        });
        await session.expectWellFormed();
      });

      test("assembles streamed responses with its helper", async () => {
        await converse(async (input) => {
          const response = await client("/v1/chat").responses.stream({ model, input }).finalResponse();
          return response.output_text;
        });
        await session.expectWellFormed();
      });

      test("returns complete responses", async () => {
        await converse(async (input) => {
          const response = await client("/v1/chat").responses.create({ model, input, stream: false });
          return response.output_text;
        });
      });

      test("returns complete chat completions and streams them with their usage", async () => {
        const completions = () => client("/v1").chat.completions;
        await converse(async (content) => {
          const stream = completions().stream({
            model,
            messages: [{ role: "user", content }],
            stream_options: { include_usage: true },
          });
          const { choices, usage } = await stream.finalChatCompletion();
          expect(usage?.total_tokens).toBeGreaterThan(0);
          return choices[0]?.message.content ?? "";
        });
        await session.expectWellFormed();
        const whole = await completions().create({ model, messages: [{ role: "user", content: RECALL }] });
        expect(whole.choices[0]?.message.content).toBe([...TURNS].join(" | "));
      });

      test("opens a session with /new in both dialects and with every helper", async () => {
        const named = new Set<string | null>();
        const say = async (text: string): Promise<void> => {
          await client("/v1/chat").responses.stream({ model, input: text }).finalResponse();
          named.add(session.session);
        };
        await say("Hi");
        const response = await client("/v1/chat").responses.stream({ model, input: "/new" }).finalResponse();
        expect(response).toMatchObject({ status: "completed", usage: { total_tokens: 0 } });
        expect(response.output_text).not.toBe("");
        expect(named.has(session.session)).toBe(false);
        await say("Hi again");
        const messages = [{ role: "user" as const, content: "/new" }];
        const acknowledged = await client("/v1").chat.completions.stream({ model, messages }).finalChatCompletion();
        expect(acknowledged.choices[0]).toMatchObject({ finish_reason: "stop" });
        expect(named.has(session.session)).toBe(false);
        await session.expectWellFormed();
        expect(await ann.history(session.session ?? "")).toEqual([]);
      });

      test("continues the previous response with a tool result", async () => {
        const tools = [{ type: "function" as const, ...WEATHER, strict: true }];
        const ask = (input: OpenAI7.Responses.ResponseInput) =>
          client("/v1/chat").responses.stream({ model, input, tools }).finalResponse();
        const called = await ask([{ role: "user", content: ASK_WEATHER }]);
        const [call] = called.output;
        if (call?.type !== "function_call") throw new Error("no tool was called");
        const after = await ask([{ type: "function_call_output", call_id: call.call_id, output: "sunny" }]);
        expect(after.output_text).toBe("The tool says: sunny");
        oneSession();
        await session.expectWellFormed();
      });
    });

    test("throws when a response is cut off, and the next turn works", async () => {
      const input = BREAKS;
      const reading = async (): Promise<void> => {
        const stream = await client("/v1/chat").responses.create({ input, stream: true });
        for await (const _event of stream);
      };
      await expect(reading()).rejects.toThrow(/closed the connection too early/);
      const next = await client("/v1/chat").responses.create({ input: RECALL, stream: false });
      expect(next.output_text).toBe(BREAKS);
    });

    test("retries by itself without repeating the question", async () => {
      let failures = 2;
      stage.script = (request, response) => {
        if (failures-- <= 0) {
          void stage.upstream.script(request, response);
          return;
        }
        request.resume();
        response.writeHead(503, { "content-type": "application/json", "retry-after": "0" });
        response.end(JSON.stringify({ error: { message: "busy", type: "server_error", code: null, param: null } }));
      };
      const persistent = client("/v1/chat", { maxRetries: 2 });
      const response = await persistent.responses.stream({ input: "Tell me" }).finalResponse();
      stage.script = stage.upstream.script;
      expect(response.output_text).toBe(HELLO);
      expect(session.statuses).toEqual([502, 502, 200]);
      expect(await ann.history(oneSession())).toEqual(["user: Tell me", `assistant: ${HELLO}`]);
    });

    test("raises its own class for each error in the table of errors", async () => {
      const ask = (headers: Record<string, string>, apiKey = ann.identity.token, rest: object = {}) =>
        client("/v1/chat", { defaultHeaders: headers, apiKey }).responses.create({
          input: "Hi",
          stream: true,
          ...rest,
        });
      await expect(ask({})).rejects.toBeInstanceOf(OpenAI.BadRequestError);
      await expect(ask(ann.headers, "nobody")).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
      await expect(ask({ "service-project-id": "prj_0" })).rejects.toBeInstanceOf(OpenAI.PermissionDeniedError);
      await expect(ask(ann.headers, ann.identity.token, { input: [] })).rejects.toMatchObject({
        status: 400,
        param: "messages",
      });
      await expect(ask(ann.headers, ann.identity.token, { model: "no/where" })).rejects.toMatchObject({
        status: 400,
        param: "model",
      });
      session.session = "ses_00000000000000000000000000";
      await expect(ask(ann.headers)).rejects.toBeInstanceOf(OpenAI.NotFoundError);
    });
  });

  describe.each([
    ["responses", "/v1/chat"],
    ["chat", "/v1"],
  ] as const)("the AI SDK, %s", (dialect, path) => {
    const model = (name: string) => createOpenAI({ ...options(path), headers: ann.headers })[dialect](name);

    test.each(Object.values(CHAT_MODELS))("with %s", async (name) => {
      await converse(async (prompt) => streamText({ model: model(name), prompt, maxRetries: 0 }).text);
      await session.expectWellFormed();
    });

    test("can send its whole history, which changes nothing", async () => {
      const said: { role: "user" | "assistant"; content: string }[] = [];
      await converse(async (content) => {
        said.push({ role: "user", content });
        const text = await streamText({ model: model(CHAT_MODELS.responses), messages: said, maxRetries: 0 }).text;
        said.push({ role: "assistant", content: text });
        return text;
      });
    });

    test("runs tools over several calls of one session", async () => {
      const get_weather = tool({
        description: "The weather in a city.",
        inputSchema: z.object({ city: z.string() }),
        execute: () => "sunny",
      });
      const { text } = streamText({
        model: model(CHAT_MODELS.responses),
        prompt: ASK_WEATHER,
        tools: { get_weather },
        stopWhen: stepCountIs(3),
        maxRetries: 0,
      });
      expect(await text).toBe("The tool says: sunny");
      expect(session.statuses).toEqual([200, 200]);
      oneSession();
      await session.expectWellFormed();
    });

    test("shows text after /new and opens another session", async () => {
      await streamText({ model: model(CHAT_MODELS.responses), prompt: "Hi", maxRetries: 0 }).text;
      const before = session.session;
      const opened = await streamText({ model: model(CHAT_MODELS.responses), prompt: "/new", maxRetries: 0 }).text;
      expect(opened).not.toBe("");
      expect(session.session).not.toBe(before);
    });
  });

  test("the AI SDK returns complete chat completions", async () => {
    const model = createOpenAI({ ...options("/v1"), headers: ann.headers }).chat(CHAT_MODELS.chat);
    await converse(async (prompt) => (await generateText({ model, prompt, maxRetries: 0 })).text);
  });

  describe.each([
    ["responses", "/v1/chat"],
    ["chat", "/v1"],
  ] as const)("LangChain, %s", (dialect, path) => {
    const chat = (model: string) => {
      const { apiKey, ...configuration } = options(path);
      return new ChatOpenAI({
        model,
        apiKey,
        useResponsesApi: dialect === "responses",
        maxRetries: 0,
        configuration: { ...configuration, defaultHeaders: ann.headers },
      });
    };
    const read = async (model: string, prompt: string): Promise<string> => {
      let text = "";
      for await (const piece of await chat(model).stream(prompt)) text += piece.text;
      return text;
    };

    test.each(Object.values(CHAT_MODELS))("with %s", async (model) => {
      await converse((prompt) => read(model, prompt));
      await session.expectWellFormed();
    });

    test("opens another session with /new", async () => {
      await read(CHAT_MODELS.chat, "Hi");
      const before = session.session;
      expect(await read(CHAT_MODELS.chat, "/new")).not.toBe("");
      expect(session.session).not.toBe(before);
    });
  });
});

describeWithDocker("chat sessions with the demo engine", () => {
  describeClient("through the openai package", async () => {
    const { default: OpenAI } = await import("openai7");
    let container = "";
    let stage: ChatStage;

    beforeAll(async () => {
      await ensureDemoImage();
      const args = ["--alias", "model", "-np", "1", "-c", "4096", "-t", "1", "--cache-ram", "0"];
      container = await docker("run", "-d", "-p", "127.0.0.1::8080", DEMO_IMAGE, ...args);
      const port = await publishedPort(container, 8080);
      await waitFor("the engine's health", 60_000, async () => (await fetch(`http://127.0.0.1:${port}/health`)).ok);
      stage = await ChatStage.start({ FAIRLEAD_INFERENCE_DEFAULT_MODEL: CHAT_MODELS.chat }, port);
    }, 300_000);
    afterAll(async () => {
      await stage.stop();
      if (container) await docker("rm", "-f", container);
    });

    test("remember what was said three turns earlier", async () => {
      const ann = await stage.newPerson("ann");
      const session = new SessionFetch();
      const client = new OpenAI({
        baseURL: `${stage.url}/v1/chat`,
        apiKey: ann.identity.token,
        defaultHeaders: ann.headers,
        fetch: session.fetch,
      });
      const ask = async (input: string): Promise<string> =>
        (await client.responses.stream({ input, temperature: 0 }).finalResponse()).output_text;
      expect(await ask("My name is Beatrix.")).toMatch(/Beatrix/);
      expect(await ask("What is 3 + 4?")).toMatch(/7/);
      expect(await ask("What is the capital of Japan?")).toMatch(/Tokyo/);
      expect(await ask("What is my name?")).toBe("Your name is Beatrix.");
      await session.expectWellFormed();
    });
  });
});
