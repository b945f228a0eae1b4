import type { ServerResponse } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import { type FakeTerminal, fakeTerminal } from "../../testing/fake-terminal.ts";
import { run } from "../../testing/run.ts";
import { type Answer, type StubHost, startStubHost } from "../../testing/stub-host.ts";

let host: StubHost | undefined;
afterEach(() => host?.close());

async function call(argv: readonly string[], answer: Answer, terminal?: FakeTerminal): ReturnType<typeof run> {
  host = await startStubHost({ "GET /v1/models": answer, "POST /v1/chat/completions": answer });
  const env = { FAIRLEAD_MODELS_URL: host.url, FAIRLEAD_API_KEY: "flk_1", FAIRLEAD_MODEL: "attic/tiny" };
  return run(argv, { env, ...(terminal ? { terminal } : {}) });
}

const piece = (content: string): string => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;

const streamed = (response: ServerResponse): void => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(`${piece("Hello")}${piece(", Ann")}data: [DONE]\n\n`);
};

describe("fairlead models", () => {
  test("prints one model per line, and sends the project key", async () => {
    const data = [{ id: "attic/tiny" }, { id: "attic/large" }];
    const result = await call(["models"], { body: { object: "list", data } });
    expect(result).toMatchObject({ code: 0, out: "attic/tiny\nattic/large\n" });
    expect(host?.seen[0]?.authorization).toBe("Bearer flk_1");
  });

  test("says why the list may be empty", async () => {
    const result = await call(["models"], { body: { object: "list", data: [] } });
    expect(result).toMatchObject({ code: 0, out: "", notes: expect.stringContaining("no ready node") });
  });
});

describe("fairlead models with a key that allows no available model", () => {
  test.each([
    [["attic/*", "fast"], "allows only attic/*, fast"],
    [[], "is empty"],
  ])("names the key's allowlist %j", async (list, words) => {
    const result = await call(["models"], { body: { object: "list", data: [], model_allow_list: list } });
    expect(result).toMatchObject({
      code: 0,
      out: "",
      notes: expect.stringContaining(`the key's model allowlist ${words}`),
    });
  });
});

describe("fairlead chat with a project key and one question", () => {
  test("streams the response to the question on the command line", async () => {
    const result = await call(["chat", "Who", "are", "you?"], streamed);
    expect(result).toMatchObject({ code: 0, out: "Hello, Ann\n" });
    expect(host?.seen[0]?.body).toEqual({
      model: "attic/tiny",
      messages: [{ role: "user", content: "Who are you?" }],
      stream: true,
    });
  });

  test("reads the question from standard input when there are no arguments", async () => {
    await call(["chat", "--model", "attic/large"], streamed, fakeTerminal({ input: "Summarise this.\n" }));
    expect(host?.seen[0]?.body).toMatchObject({
      model: "attic/large",
      messages: [{ role: "user", content: "Summarise this." }],
    });
  });

  test("is a usage error when standard input is empty", async () => {
    expect((await call(["chat"], streamed, fakeTerminal({ input: "  \n" }))).code).toBe(2);
  });

  test("prints the whole response object with --json", async () => {
    const answer = {
      id: "c1",
      choices: [{ message: { role: "assistant", content: "Hi" } }],
      usage: { total_tokens: 3 },
    };
    const result = await call(["chat", "--json", "Hi"], { body: answer });
    expect(JSON.parse(result.out)).toEqual(answer);
    expect(host?.seen[0]?.body).not.toHaveProperty("stream");
  });

  test("stops the call and ends the line on Ctrl-C", async () => {
    const terminal = fakeTerminal();
    const left = Promise.withResolvers<void>();
    const endless = (response: ServerResponse): void => {
      response.on("close", () => left.resolve());
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(piece("Once upon"));
    };
    const out = (text: string): void => {
      terminal.out(text);
      if (text === "Once upon") terminal.interrupt();
    };
    const result = await call(["chat", "A story"], endless, { ...terminal, out });
    expect(result).toMatchObject({ code: 130, out: "Once upon\n", notes: "" });
    await left.promise;
  });

  test("ends the line and fails when the response is cut off", async () => {
    const broken = (response: ServerResponse): void => void response.end(piece("Hel"));
    const result = await call(["chat", "Hi"], broken);
    expect(result).toMatchObject({ code: 1, out: "Hel\n", notes: expect.stringContaining("cut off") });
  });

  test("fails with a message, not a stack trace, when the connection is cut in mid-response", async () => {
    const cut = (response: ServerResponse): void => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(piece("Hel"), () => response.destroy());
    };
    const result = await call(["chat", "Hi"], cut);
    expect(result).toMatchObject({ code: 1, notes: expect.stringContaining("cut off") });
    expect(result.notes).not.toContain(" at ");
  });
});
