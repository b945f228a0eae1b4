import { afterEach, describe, expect, test } from "vitest";
import { run } from "../../testing/run.ts";
import { type Answer, type StubHost, startStubHost } from "../../testing/stub-host.ts";

let host: StubHost | undefined;
afterEach(() => host?.close());

async function call(argv: readonly string[], answers: Record<string, Answer>): ReturnType<typeof run> {
  host = await startStubHost(answers);
  const env = { FAIRLEAD_BASE_URL: host.url, FAIRLEAD_TOKEN: "tok", FAIRLEAD_PROJECT_ID: "prj_1" };
  return run(["chat-session", ...argv], { env });
}

const PATH = "/v1/chat/sessions/ses_1";
const session = {
  id: "ses_1",
  projectId: "prj_1",
  userId: "usr_1",
  metadata: {},
  title: "Garden\u001b[2J",
  model: null,
  messageCount: 2,
  createdAt: "2030-01-01T00:00:00.000Z",
  running: false,
  updatedAt: "2030-01-02T00:00:00.000Z",
};
const place = { turnId: "trn_1", position: 1, item: {} };
const messages = [
  {
    ...place,
    id: "msg_1",
    role: "user",
    content: "What to plant?",
    status: "completed",
    createdAt: "2030-01-01T00:00:00.000Z",
  },
  { ...place, id: "msg_2", role: "assistant", content: "Ro\u001b[2Jses\nand", status: "incomplete", createdAt: "2030" },
];

describe("fairlead chat-session", () => {
  test("list shows and searches the project's sessions", async () => {
    const { out } = await call(["list", "--search", "to plant"], {
      "GET /v1/chat/sessions": { body: { sessions: [session], nextPageToken: null } },
    });
    expect(out).toMatch(/ses_1 +Garden\ufffd\[2J +2 +2030-01-02/);
    expect(host?.seen).toMatchObject([
      {
        url: "/v1/chat/sessions?query=to+plant&pageSize=20",
        headers: { "service-project-id": "prj_1", authorization: "Bearer tok" },
      },
    ]);
  });

  test("list says how to start a session when there is none", async () => {
    const none = { "GET /v1/chat/sessions": { body: { sessions: [], nextPageToken: null } } };
    expect((await call(["list"], none)).out).toContain("`fairlead chat`");
  });

  test("show prints the messages in order, with their state", async () => {
    const { out } = await call(["show", "ses_1"], {
      [`GET ${PATH}/messages`]: { body: { messages, nextPageToken: null } },
    });
    expect(out).toBe(
      "user (2030-01-01T00:00:00.000Z)\nWhat to plant?\n\nassistant (2030, incomplete)\nRo\ufffd[2Jses\nand\n",
    );
    expect(host?.seen[0]?.url).toContain("order=asc");
  });

  test("rename sends only the title", async () => {
    const renamed = { ...session, title: "Plans" };
    expect((await call(["rename", "ses_1", "Plans"], { [`PATCH ${PATH}`]: { body: renamed } })).out).toBe(
      "ses_1 Plans\n",
    );
    expect(host?.seen[0]?.body).toEqual({ title: "Plans" });
  });

  test("delete names the deleted session", async () => {
    expect((await call(["delete", "ses_1"], { [`DELETE ${PATH}`]: { body: {} } })).out).toBe("deleted ses_1\n");
  });

  test("export prints JSON with or without --json", async () => {
    const whole = { session, messages };
    const { out } = await call(["export", "ses_1"], { [`GET ${PATH}/export`]: { body: whole } });
    expect(JSON.parse(out)).toEqual(whole);
  });

  test("reports another user's session as not found, in the server's words", async () => {
    const refusal = { message: "There is no such session.", code: "session_not_found", requestId: "req_1" };
    const { code, notes } = await call(["show", "ses_2"], {
      "GET /v1/chat/sessions/ses_2/messages": { status: 404, body: { error: refusal } },
    });
    expect(code).toBe(1);
    expect(notes).toContain("There is no such session. (session_not_found, req_1)");
  });
});
