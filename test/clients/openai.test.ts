import type OpenAI7 from "openai7";
import { describe, expect, test } from "vitest";
import { BREAKS, FAILS, HELLO, NEVER_ENDS, REFUSED, THINKS } from "../support/scripted-model.ts";
import { MODEL } from "../support/two-dialects.ts";
import { ASK_TWICE, describeClient, expectLeft, lastAsked, useStage, WEATHER } from "./support.ts";

type Sdk = typeof OpenAI7;

describeClient("openai", async () => {
  // Both are OpenAI's own client; what is used of them here did not change between the two.
  const sdks = {
    "openai 6": (await import("openai6")).default as unknown as Sdk,
    "openai 7": (await import("openai7")).default,
  };
  const stage = useStage();

  describe.each(Object.entries(sdks))("%s", (_name, OpenAI) => {
    const client = (apiKey = stage.key) => new OpenAI({ apiKey, baseURL: stage.baseUrl, maxRetries: 0 });

    describe.each([
      ["native", MODEL.chat],
      ["bridged", MODEL.responses],
    ])("chat completions, %s", (_way, model) => {
      const messages = (content: string) => [{ role: "user" as const, content }];
      const tools = [{ type: "function" as const, function: WEATHER }];

      test("returns a complete response", async () => {
        const answer = await client().chat.completions.create({ model, messages: messages("Hi") });
        expect(answer.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: HELLO } });
        expect(answer.usage).toMatchObject({ prompt_tokens: 7, total_tokens: 13 });
        expect(answer._request_id).toMatch(/^req_/);
      });

      test("streams a response, with usage only when it is requested", async () => {
        for (const include_usage of [true, false]) {
          let text = "";
          const usages = [];
          const ask = { model, messages: messages("Hi"), stream: true as const, stream_options: { include_usage } };
          for await (const { choices, usage } of await client().chat.completions.create(ask)) {
            text += choices[0]?.delta.content ?? "";
            if (usage) usages.push(usage.total_tokens);
          }
          expect(text).toBe(HELLO);
          expect(usages).toEqual(include_usage ? [13] : []);
        }
      });

      test("assembles a stream with its helper, reasoning separate from text", async () => {
        const stream = client().chat.completions.stream({ model, messages: messages(THINKS) });
        const answer = await stream.finalChatCompletion();
        expect(answer.choices[0]?.message.content).toBe(HELLO);
      });

      test("runs parallel tool calls with the helper that runs tools", async () => {
        const cities: string[] = [];
        const run = client().chat.completions.runTools({
          model,
          stream: true,
          messages: messages(ASK_TWICE),
          tools: [
            {
              type: "function",
              function: {
                ...WEATHER,
                parameters: { ...WEATHER.parameters, required: ["city"] },
                parse: (text: string) => JSON.parse(text) as { city: string },
                function: ({ city }: { city: string }) => {
                  cities.push(city);
                  return "sunny";
                },
              },
            },
          ],
        });
        expect(await run.finalContent()).toBe("The tool says: sunny");
        expect(cities).toEqual(["Paris", "Tokyo"]);
      });

      test("supports a required tool and a forbidden one", async () => {
        const ask = { model, messages: messages("Hi"), tools };
        const demanded = await client().chat.completions.create({
          ...ask,
          tool_choice: { type: "function", function: { name: "get_weather" } },
        });
        expect(demanded.choices[0]).toMatchObject({
          finish_reason: "tool_calls",
          message: {
            content: null,
            tool_calls: [{ function: { name: "get_weather", arguments: '{"city":"Paris"}' } }],
          },
        });
        const forbidden = await client().chat.completions.create({ ...ask, tool_choice: "none" });
        expect(forbidden.choices[0]?.message).toMatchObject({ content: HELLO });
      });

      test("returns a response of a given schema and one cut off by a limit", async () => {
        const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
        const formed = await client().chat.completions.create({
          model,
          messages: messages("Hi"),
          response_format: { type: "json_schema", json_schema: { name: "place", schema } },
        });
        expect(formed.choices[0]?.message.content).toBe('{"city":"Paris"}');
        const cut = await client().chat.completions.create({
          model,
          messages: messages("Hi"),
          max_completion_tokens: 1,
        });
        expect(cut.choices[0]).toMatchObject({ finish_reason: "length", message: { content: "Hello " } });
      });

      test("throws when a response is cut off or fails", async () => {
        for (const [text, said] of [
          [BREAKS, "closed the connection too early"],
          [FAILS, "lost its thread"],
        ] as const) {
          const stream = await client().chat.completions.create({ model, messages: messages(text), stream: true });
          await expect(readAll(stream)).rejects.toThrow(said);
        }
      });

      test("stops the engine when a call is aborted", async () => {
        const before = stage.upstream.left;
        const stream = await client().chat.completions.create({ model, messages: messages(NEVER_ENDS), stream: true });
        for await (const _chunk of stream) break;
        await expectLeft(stage, before);
      });

      test("raises a refusal with its class, code and field", async () => {
        const refused = client().chat.completions.create({ model, messages: messages(REFUSED) });
        await expect(refused).rejects.toMatchObject({
          constructor: OpenAI.BadRequestError,
          param: "messages",
          type: "invalid_request_error",
        });
      });
    });

    describe.each([
      ["native", MODEL.responses],
      ["bridged", MODEL.chat],
    ])("responses, %s", (_way, model) => {
      const tools = [{ type: "function" as const, ...WEATHER, strict: true }];

      test("returns a complete response", async () => {
        const response = await client().responses.create({ model, input: "Hi" });
        expect(response).toMatchObject({ status: "completed", output_text: HELLO, usage: { input_tokens: 7 } });
        expect(response._request_id).toMatch(/^req_/);
      });

      test("assembles a stream with its helper, with reasoning in a separate item", async () => {
        const stream = client().responses.stream({ model, input: THINKS });
        let text = "";
        stream.on("response.output_text.delta", ({ delta }) => void (text += delta));
        const response = await stream.finalResponse();
        expect(text).toBe(HELLO);
        expect(response.output.map(({ type }) => type)).toEqual(["reasoning", "message"]);
        expect(response.usage?.output_tokens).toBeGreaterThan(0);
      });

      test("runs parallel tool calls and the turn after them", async () => {
        const called = await client().responses.stream({ model, input: ASK_TWICE, tools }).finalResponse();
        const calls = called.output.filter((item) => item.type === "function_call");
        expect(calls.map((call) => call.arguments)).toEqual(['{"city":"Paris"}', '{"city":"Tokyo"}']);
        const input = [
          { role: "user" as const, content: ASK_TWICE },
          ...calls,
          ...calls.map(({ call_id }) => ({ type: "function_call_output" as const, call_id, output: "sunny" })),
        ];
        const after = await client().responses.create({ model, input, tools });
        expect(after.output_text).toBe("The tool says: sunny");
      });

      test("supports instructions, a response of a given schema, and one cut off by a limit", async () => {
        const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
        const formed = await client().responses.create({
          model,
          instructions: "Be brief.",
          input: "Hi",
          text: { format: { type: "json_schema", name: "place", schema } },
        });
        expect(formed.output_text).toBe('{"city":"Paris"}');
        expect(JSON.stringify(lastAsked(stage).body)).toContain("Be brief.");
        const cut = await client().responses.create({ model, input: "Hi", max_output_tokens: 1 });
        expect(cut).toMatchObject({
          status: "incomplete",
          incomplete_details: { reason: "max_output_tokens" },
          output_text: "Hello ",
        });
      });

      test("throws when a response is cut off or fails", async () => {
        for (const [input, said] of [
          [BREAKS, "closed the connection too early"],
          [FAILS, "lost its thread"],
        ] as const) {
          const stream = await client().responses.create({ model, input, stream: true });
          await expect(readAll(stream)).rejects.toThrow(said);
          await expect(client().responses.stream({ model, input }).finalResponse()).rejects.toThrow(said);
        }
      });

      test("stops the engine when a call is aborted", async () => {
        const before = stage.upstream.left;
        const stream = await client().responses.create({ model, input: NEVER_ENDS, stream: true });
        for await (const event of stream) if (event.type === "response.output_text.delta") break;
        await expectLeft(stage, before);
      });

      test("raises a refusal with its class, code and field", async () => {
        await expect(client().responses.create({ model, input: REFUSED })).rejects.toMatchObject({
          constructor: OpenAI.BadRequestError,
          param: "input",
          type: "invalid_request_error",
        });
      });
    });

    test("lists and retrieves models, and calls the default model when none is named", async () => {
      const models = await client().models.list();
      expect(models.data.map(({ id }) => id)).toEqual([MODEL.chat, MODEL.responses]);
      expect(await client().models.retrieve(MODEL.chat)).toMatchObject({ id: MODEL.chat, owned_by: "node-1" });
      const ask = { messages: [{ role: "user", content: "Hi" }] } as unknown as { model: string; messages: [] };
      expect((await client().chat.completions.create(ask)).model).toBe("chat");
    });

    test("raises a wrong key, an unknown model and a chain that is not kept with their classes and codes", async () => {
      const { responses } = client();
      await expect(client("flk_wrong").models.list()).rejects.toMatchObject({
        constructor: OpenAI.AuthenticationError,
        code: "invalid_credential",
      });
      await expect(responses.create({ model: "node-1/none", input: "Hi" })).rejects.toMatchObject({
        constructor: OpenAI.NotFoundError,
        code: "model_not_found",
        param: "model",
      });
      const chained = responses.create({ model: MODEL.chat, input: "Hi", previous_response_id: "resp_1" });
      await expect(chained).rejects.toMatchObject({
        constructor: OpenAI.BadRequestError,
        code: "previous_response_not_found",
        param: "previous_response_id",
      });
    });
  });
});

async function readAll(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _event of stream);
}
