import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DataPlane, PROJECT_KEY } from "../support/data-plane.ts";
import { readBytes } from "../support/scripted-engine.ts";

const MESSAGES = [{ role: "user" as const, content: "hi" }];

const plane = new DataPlane();

function client(apiKey: string = PROJECT_KEY): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${plane.url}/v1`, maxRetries: 0 });
}

const chunk = (delta: object): string =>
  `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 1, model: "tiny", choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`;

beforeAll(async () => {
  await plane.start();
  plane.engine.script = async (request, response) => {
    const body = JSON.parse((await readBytes(request)).toString()) as { model: string; stream?: boolean };
    if (body.stream) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(chunk({ role: "assistant", content: null }) + chunk({ content: "Hel" }));
      response.end(`${chunk({ content: `lo from ${body.model}` })}data: [DONE]\n\n`);
      return;
    }
    const message = { role: "assistant", content: `Hello from ${body.model}` };
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ id: "1", object: "chat.completion", choices: [{ index: 0, message }] }));
  };
});

afterAll(async () => {
  await plane.stop();
});

describe("the openai SDK", () => {
  test("gets a response with its request ID", async () => {
    const answer = await client().chat.completions.create({ model: "node-1/org/large", messages: MESSAGES });
    expect(answer.choices[0]?.message.content).toBe("Hello from org/large");
    expect(answer._request_id).toMatch(/^req_/);
  });

  test("streams a response", async () => {
    const stream = await client().chat.completions.create({ model: "node-1/tiny", messages: MESSAGES, stream: true });
    let text = "";
    for await (const part of stream) text += part.choices[0]?.delta.content ?? "";
    expect(text).toBe("Hello from tiny");
  });

  test("lists models and gets one whose name contains a slash", async () => {
    const models = await client().models.list();
    expect(models.data.map((model) => model.id)).toEqual(["node-1/org/large", "node-1/tiny"]);
    expect(await client().models.retrieve("node-1/org/large")).toMatchObject({
      id: "node-1/org/large",
      object: "model",
      created: 1_700_000_000,
      owned_by: "node-1",
    });
  });

  test("raises its own class for a bad key, an unknown model, and an engine that is not running", async () => {
    const call = (api: OpenAI, model: string): Promise<unknown> =>
      api.chat.completions.create({ model, messages: MESSAGES });
    await expect(call(client("flk_wrong"), "node-1/tiny")).rejects.toBeInstanceOf(OpenAI.AuthenticationError);
    await expect(call(client(), "node-1/unknown")).rejects.toMatchObject({
      constructor: OpenAI.NotFoundError,
      code: "model_not_found",
      param: "model",
      type: "not_found_error",
    });
    const { target } = plane;
    plane.target = { ...target, absence: "It starts." };
    await expect(call(client(), "node-1/tiny")).rejects.toMatchObject({
      constructor: OpenAI.InternalServerError,
      status: 503,
      code: "no_running_engine",
    });
    plane.target = target;
  });

  test("retries a call whose engine failed before it responded", async () => {
    const api = new OpenAI({ apiKey: PROJECT_KEY, baseURL: `${plane.url}/v1`, maxRetries: 1 });
    const { script } = plane.engine;
    let calls = 0;
    plane.engine.script = (request, response) => {
      calls++;
      if (calls === 1) request.socket.destroy();
      else void script(request, response);
    };
    const answer = await api.chat.completions.create({ model: "node-1/tiny", messages: MESSAGES });
    expect(answer.choices[0]?.message.content).toBe("Hello from tiny");
    expect(calls).toBe(2);
    plane.engine.script = script;
  });

  test("throws when the engine breaks off in mid-stream", async () => {
    const { script } = plane.engine;
    plane.engine.script = (_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).write(chunk({ content: "Hel" }));
      setImmediate(() => response.destroy());
    };
    const stream = await client().chat.completions.create({ model: "node-1/tiny", messages: MESSAGES, stream: true });
    const read = async (): Promise<void> => {
      for await (const part of stream) expect(part.choices[0]?.delta.content).toBe("Hel");
    };
    await expect(read()).rejects.toMatchObject({ code: "upstream_failed" });
    plane.engine.script = script;
  });
});
