import type { ServerResponse } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import { type FakeTerminal, fakeTerminal } from "../../testing/fake-terminal.ts";
import { run } from "../../testing/run.ts";
import { type Answer, type SeenRequest, type StubHost, startStubHost } from "../../testing/stub-host.ts";

let host: StubHost | undefined;
afterEach(() => host?.close());

interface Given {
  readonly answers?: Record<string, Answer>;
  readonly terminal?: FakeTerminal;
  readonly env?: Record<string, string>;
}

async function call(argv: readonly string[], { answers = {}, terminal, env }: Given = {}): ReturnType<typeof run> {
  host = await startStubHost({ "POST /v1/chat/responses": says("ses_1", "Hello", ", Ann"), ...answers });
  const signedIn = { FAIRLEAD_BASE_URL: host.url, FAIRLEAD_TOKEN: "tok", FAIRLEAD_PROJECT_ID: "prj_1" };
  return run(["chat", ...argv], { env: { ...signedIn, ...env }, ...(terminal ? { terminal } : {}) });
}

const event = (type: string, rest: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;
const delta = (text: string): string => event("response.output_text.delta", { delta: text });
const COMPLETED = `${event("response.completed", { response: {} })}data: [DONE]\n\n`;
const begin = (response: ServerResponse, session: string): ServerResponse =>
  response.writeHead(200, { "content-type": "text/event-stream", "service-session-id": session });
const says =
  (session: string, ...pieces: readonly string[]) =>
  (response: ServerResponse): void =>
    void begin(response, session).end(pieces.map(delta).join("") + COMPLETED);
const refuses = (status: number, code: string, message: string): Answer => ({
  status,
  body: { error: { message, code, requestId: "req_1" } },
});
const asked = (): readonly SeenRequest[] => host?.seen.filter(({ url }) => url === "/v1/chat/responses") ?? [];
const textOf = ({ body }: SeenRequest): unknown =>
  (body as { readonly messages: readonly { readonly content: unknown }[] }).messages[0]?.content;
const session = {
  id: "ses_9",
  projectId: "prj_1",
  userId: "usr_1",
  title: "Garden",
  model: "a/b",
  messageCount: 4,
  metadata: {},
  createdAt: "2030",
  running: false,
  updatedAt: "2031",
};

describe("one question", () => {
  test("starts a session of its own, which is named after the response", async () => {
    const { code, out, notes } = await call(["Who", "are", "you?"], { env: { FAIRLEAD_MODEL: "attic/tiny" } });
    expect({ code, out }).toEqual({ code: 0, out: "Hello, Ann\n" });
    expect(notes).toContain("fairlead chat --session ses_1");
    expect(asked()).toMatchObject([
      {
        authorization: "Bearer tok",
        idempotencyKey: expect.stringMatching(/^req_/),
        headers: { "service-project-id": "prj_1" },
        body: { model: "attic/tiny", messages: [{ role: "user", content: "Who are you?" }] },
      },
    ]);
    expect(asked()[0]?.headers).not.toHaveProperty("service-session-id");
  });

  test("continues a session, and leaves the choice of model to it", async () => {
    const answers = { "GET /v1/chat/sessions/ses_9": { body: session } };
    await call(["--session", "ses_9", "And", "then?"], {
      answers,
      env: { FAIRLEAD_API_KEY: "flk_1", FAIRLEAD_MODEL: "x/y" },
    });
    expect(asked()[0]?.headers["service-session-id"]).toBe("ses_9");
    expect(asked()[0]?.body).not.toHaveProperty("model");
  });

  test("continues the session that was used last", async () => {
    const answers = { "GET /v1/chat/sessions": { body: { sessions: [session], nextPageToken: "" } } };
    await call(["--continue", "--model", "x/y", "Hm"], { answers, terminal: fakeTerminal({ input: "" }) });
    expect(asked()[0]?.headers["service-session-id"]).toBe("ses_9");
    expect(asked()[0]?.body).toMatchObject({ model: "x/y" });
  });

  test("can come from standard input", async () => {
    await call(["--session", "new"], { terminal: fakeTerminal({ input: "Summarise this.\n" }) });
    expect(asked().map(textOf)).toEqual(["Summarise this."]);
  });

  test("prints the session and the whole response with --json", async () => {
    const whole = (response: ServerResponse): void => {
      response.writeHead(200, { "content-type": "application/json", "service-session-id": "ses_1" });
      response.end(JSON.stringify({ id: "resp_1", status: "completed" }));
    };
    const { out } = await call(["--json", "Hi"], { answers: { "POST /v1/chat/responses": whole } });
    expect(JSON.parse(out)).toEqual({ sessionId: "ses_1", response: { id: "resp_1", status: "completed" } });
    expect(asked()[0]?.body).toMatchObject({ stream: false });
  });

  test("has control characters in its response replaced on a terminal, but not in a pipe", async () => {
    const answers = { "POST /v1/chat/responses": says("ses_1", "a\u001b[2J\nb") };
    expect((await call(["Hi"], { answers })).out).toBe("a\ufffd[2J\nb\n");
    host?.close();
    const piped = await call(["Hi"], { answers, terminal: fakeTerminal({ input: "" }) });
    expect(piped.out).toBe("a\u001b[2J\nb\n");
  });

  test.each([
    ["404 session_not_found", /chat-session list/],
    ["402 insufficient_balance", /credits add/],
    ["403 permission_denied", /project list/],
    ["409 session_busy", /\/stop/],
    ["502 upstream_failed", /not stored twice/],
    ["503 not_configured", /--model/],
  ])("that fails with %s says what to do", async (refusal, advice) => {
    const [status, code = ""] = refusal.split(" ");
    const answers = { "POST /v1/chat/responses": refuses(Number(status), code, "Said by the server.") };
    const { code: exit, notes } = await call(["Hi"], { answers });
    expect(exit).toBe(1);
    expect(notes).toContain("Said by the server.");
    expect(notes).toMatch(advice);
  });

  test("for a session that does not exist says how to list sessions, and is not sent", async () => {
    const answers = { "GET /v1/chat/sessions/ses_0": refuses(404, "session_not_found", "There is no such session.") };
    const { code, notes } = await call(["--session", "ses_0", "Hi"], { answers });
    expect(code).toBe(1);
    expect(notes).toContain("chat-session list");
    expect(asked()).toEqual([]);
  });

  test("that an upstream rejects without a code shows the upstream's message", async () => {
    const error = { message: "The model is resting.", code: null };
    const answers = { "POST /v1/chat/responses": { status: 502, body: { error } } };
    expect((await call(["Hi"], { answers })).notes).toBe("fairlead: The model is resting.\n");
  });

  test("says how to continue when the connection is cut", async () => {
    const cut = (response: ServerResponse): void =>
      void begin(response, "ses_1").write(delta("Hel"), () => response.destroy());
    const { code, out, notes } = await call(["Hi"], { answers: { "POST /v1/chat/responses": cut } });
    expect({ code, out }).toEqual({ code: 1, out: "Hel\n" });
    expect(notes).toContain("fairlead chat --session ses_1");
    expect(notes).not.toContain(" at ");
  });

  test("is sent again with the same Idempotency-Key when its response is lost", async () => {
    let calls = 0;
    const lostOnce = (response: ServerResponse): void => {
      if (calls++ === 0) response.destroy();
      else says("ses_1", "Hello")(response);
    };
    expect((await call(["Hi"], { answers: { "POST /v1/chat/responses": lostOnce } })).out).toBe("Hello\n");
    const keys = asked().map(({ idempotencyKey }) => idempotencyKey);
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
  });

  test("stops on the server on Ctrl-C, and keeps the partial response", async () => {
    const terminal = interruptedBy("Once");
    const running = Promise.withResolvers<ServerResponse>();
    const answers = {
      "POST /v1/chat/responses": (response: ServerResponse): void => {
        begin(response, "ses_1").write(delta("Once"));
        running.resolve(response);
      },
      "POST /v1/chat/sessions/ses_1:stop": async (response: ServerResponse): Promise<void> => {
        response.end('{"stopped":true}');
        (await running.promise).end(event("response.incomplete", { response: { incomplete_details: null } }));
      },
    };
    const { code, out, notes } = await call(["A story"], { answers, terminal });
    expect({ code, out }).toEqual({ code: 130, out: "Once\n" });
    expect(notes).toContain("fairlead chat --session ses_1");
  });
});

/** Presses Ctrl-C each time this text is printed. */
function interruptedBy(text: string, options: Parameters<typeof fakeTerminal>[0] = {}): FakeTerminal {
  const terminal = fakeTerminal(options);
  return {
    ...terminal,
    out: (shown) => {
      terminal.out(shown);
      if (shown === text) terminal.interrupt();
    },
  };
}

describe("a chat", () => {
  const talk = (messages: readonly (string | null)[], answers: Record<string, Answer> = {}, argv: string[] = []) =>
    call(argv, { answers, terminal: fakeTerminal({ messages }) });

  test("stays in its session from turn to turn", async () => {
    const { code, out, notes } = await talk(["Hi", "", "And then?", "/exit"]);
    expect({ code, out }).toEqual({ code: 0, out: "Hello, Ann\nHello, Ann\n" });
    expect(asked().map(({ headers }) => headers["service-session-id"])).toEqual([undefined, "ses_1"]);
    expect(new Set(asked().map(({ idempotencyKey }) => idempotencyKey)).size).toBe(2);
    expect(notes).toContain("fairlead chat --session ses_1");
  });

  test("starts another session on /new", async () => {
    await talk(["Hi", "/new", "Hello again"]);
    expect(asked().map(({ headers }) => headers["service-session-id"])).toEqual([undefined, undefined]);
    expect(asked().map(textOf)).toEqual(["Hi", "Hello again"]);
  });

  test("lists sessions on /sessions, and on /resume shows the end of one and continues it", async () => {
    const place = { turnId: "trn_1", position: 1, item: {} };
    const said = [
      { ...place, id: "msg_2", role: "assistant", content: "Roses.", status: "incomplete", createdAt: "2030" },
      { ...place, id: "msg_1", role: "user", content: "What to plant?", status: "completed", createdAt: "2030" },
    ];
    const { notes } = await talk(["/sessions garden", "/resume 1", "Where?"], {
      "GET /v1/chat/sessions": { body: { sessions: [session], nextPageToken: null } },
      "GET /v1/chat/sessions/ses_9": { body: session },
      "GET /v1/chat/sessions/ses_9/messages": { body: { messages: said, nextPageToken: null } },
    });
    expect(notes).toMatch(/1 +ses_9 +Garden/);
    expect(notes).toContain("> What to plant?\nRoses. (incomplete)\n");
    expect(host?.seen[0]?.url).toContain("query=garden");
    expect(host?.seen[0]?.headers["service-project-id"]).toBe("prj_1");
    expect(asked()[0]?.headers["service-session-id"]).toBe("ses_9");
  });

  test("applies /model, /title, /retry and /stop to its session", async () => {
    await talk(["/model x/y", "Hi", "/title Garden plans", "/retry", "/stop"], {
      "PATCH /v1/chat/sessions/ses_1": { body: { ...session, title: "Garden plans" } },
      "POST /v1/chat/sessions/ses_1:regenerate": says("ses_1", "Hello once more"),
      "POST /v1/chat/sessions/ses_1:stop": { body: { stopped: true } },
    });
    expect(host?.seen.map(({ method, url, body }) => [method, url, body])).toEqual([
      ["POST", "/v1/chat/responses", { model: "x/y", messages: [{ role: "user", content: "Hi" }] }],
      ["PATCH", "/v1/chat/sessions/ses_1", { title: "Garden plans" }],
      ["POST", "/v1/chat/sessions/ses_1:regenerate", { model: "x/y" }],
      ["POST", "/v1/chat/sessions/ses_1:stop", {}],
    ]);
  });

  test("treats // as an escaped slash, and a path as text, not as a command", async () => {
    await talk(["//exit", "/etc/hosts holds what?"]);
    expect(asked().map(textOf)).toEqual(["/exit", "/etc/hosts holds what?"]);
  });

  test("reports a command that cannot be carried out, and continues", async () => {
    const { code, out, notes } = await talk(["/dance", "/retry", "/title x", "/resume", "/resume 3", "/help", "Hi"]);
    for (const told of [
      "command /dance",
      "no response to retry",
      "no session yet",
      "Name a session",
      "number 3",
      "/exit",
    ]) {
      expect(notes).toContain(told);
    }
    expect({ code, out }).toEqual({ code: 0, out: "Hello, Ann\n" });
  });

  test("keeps the session of a failed first turn, whether rejected or cut off", async () => {
    const turns = [
      (response: ServerResponse): void => {
        response.writeHead(502, { "service-session-id": "ses_1" });
        response.end(JSON.stringify({ error: { message: "The engine is gone.", code: "upstream_failed" } }));
      },
      says("ses_1", "Yes"),
    ];
    await talk(["Hi", "Hi"], {
      "POST /v1/chat/responses": (response) => (turns.shift() ?? says("ses_1", "?"))(response),
    });
    expect(asked().map(({ headers }) => headers["service-session-id"])).toEqual([undefined, "ses_1"]);
  });

  test("keeps its session for the next turn when a turn fails", async () => {
    const turns = [
      says("ses_1", "Hello"),
      (response: ServerResponse) => void begin(response, "ses_1").end(delta("Hel")),
    ];
    const { code, out, notes } = await talk(["Hi", "More", "More"], {
      "POST /v1/chat/responses": (response) => (turns.shift() ?? says("ses_1", "Yes"))(response),
    });
    expect({ code, out }).toEqual({ code: 0, out: "Hello\nHel\nYes\n" });
    expect(notes).toContain("The response was cut off");
    expect(asked().map(({ headers }) => headers["service-session-id"])).toEqual([undefined, "ses_1", "ses_1"]);
  });

  test("ends on Ctrl-C at the prompt", async () => {
    expect((await talk(["Hi", null])).code).toBe(130);
  });

  test("ends on a second Ctrl-C while a response is still arriving", async () => {
    const left = Promise.withResolvers<void>();
    const terminal = interruptedBy("word", { messages: ["Go", "never read"] });
    const answers = {
      "POST /v1/chat/responses": (response: ServerResponse): void => {
        response.on("close", () => left.resolve());
        begin(response, "ses_1").write(delta("word"));
        setImmediate(() => response.write(delta("word")));
      },
      "POST /v1/chat/sessions/ses_1:stop": { body: { stopped: true } },
    };
    expect((await call([], { answers, terminal })).code).toBe(130);
    await left.promise;
    expect(asked()).toHaveLength(1);
  });

  test("continues the last session with --continue, which fails when there is none", async () => {
    const none = { "GET /v1/chat/sessions": { body: { sessions: [], nextPageToken: null } } };
    expect((await talk([], none, ["--continue"])).code).toBe(2);
  });

  test.each([[["--json"]], [["--session", "ses_1", "--continue"]]])("with %j is a usage error", async (argv) => {
    expect((await talk([], {}, argv)).code).toBe(2);
  });
});
