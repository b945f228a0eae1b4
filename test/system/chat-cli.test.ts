import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type FakeTerminal, fakeTerminal } from "../../packages/cli/src/testing/fake-terminal.ts";
import { run } from "../../packages/cli/src/testing/run.ts";
import type { ChatCaller } from "../support/chat-caller.ts";
import { ChatStage } from "../support/chat-stage.ts";
import { BREAKS, HELLO, NEVER_ENDS, RECALL } from "../support/scripted-model.ts";

/** `fairlead chat` and `fairlead chat-session` before a real server. */

let stage: ChatStage;
let ann: ChatCaller;

beforeAll(async () => {
  stage = await ChatStage.start();
  ann = await stage.newPerson("ann");
});
afterAll(() => stage.stop());

async function fairlead(argv: readonly string[], terminal: FakeTerminal = fakeTerminal({ input: "" })) {
  const { url, token, projectId } = ann.identity;
  const env = { FAIRLEAD_BASE_URL: url, FAIRLEAD_TOKEN: token, FAIRLEAD_PROJECT_ID: projectId };
  return run(argv, { terminal, env });
}
const sessionIn = (notes: string): string => /--session (ses_\w+)/.exec(notes)?.[1] ?? "";
const talk = (...messages: string[]) => fairlead(["chat"], fakeTerminal({ messages }));

describe("a chat in the terminal", () => {
  test("remembers, starts a new session, resumes an old one, and can be titled and searched", async () => {
    const first = await talk("My name is Ada.", "I like roses.", RECALL, "/title Who I am", "/retry");
    expect(first.out).toBe(`${HELLO}\n${HELLO}\n${"My name is Ada. | I like roses.\n".repeat(2)}`);
    expect(first.notes).toContain('The session\'s title is now "Who I am".');
    const second = await talk("Something else", "/sessions roses", "/resume 1", RECALL, "/new", RECALL);
    expect(second.out).toBe(`${HELLO}\nMy name is Ada. | I like roses. | ${RECALL}\n`);
    expect(second.notes).toContain("Who I am");
    expect(second.notes).toContain("> I like roses.");
  });

  test("reports a response that was cut off, keeps what was received, and stores the question once", async () => {
    const { out, notes } = await talk(BREAKS, BREAKS, "And now?");
    expect(out).toMatch(new RegExp(`^Hello ?\\nHello ?\\n${HELLO}\\n$`));
    expect(notes.split("The response was cut off")).toHaveLength(3);
    const history = await ann.history(sessionIn(notes));
    expect(history.filter((line) => line.startsWith("user: "))).toEqual([`user: ${BREAKS}`, "user: And now?"]);
  });

  test("stops the response on the server with Ctrl-C and continues", async () => {
    const terminal = fakeTerminal({ messages: [NEVER_ENDS, "Hi"] });
    const out = (text: string): void => {
      terminal.out(text);
      if (text.startsWith("Hello") && !terminal.printed.out.includes("\n")) terminal.interrupt();
    };
    const before = stage.upstream.left;
    const { code, notes } = await fairlead(["chat"], { ...terminal, out });
    expect(code).toBe(0);
    expect(notes).toContain("(stopped; the partial response is saved)");
    expect(stage.upstream.left).toBe(before + 1);
    expect((await ann.messages(sessionIn(notes))).map(({ status }) => status)).toEqual([
      "completed",
      "incomplete",
      "completed",
      "completed",
    ]);
  });
});

describe("single questions in a session", () => {
  test("can be continued, shown, renamed, exported and deleted", async () => {
    const asked = await fairlead(["chat", "--json", "My name is Ada."]);
    const { sessionId, response } = JSON.parse(asked.out) as { sessionId: string; response: { status: string } };
    expect(response.status).toBe("completed");
    const piped = await fairlead(["chat", "--continue"], fakeTerminal({ input: `${RECALL}\n` }));
    expect(piped.out).toBe("My name is Ada.\n");
    expect(sessionIn(piped.notes)).toBe(sessionId);
    expect((await fairlead(["chat-session", "show", sessionId])).out).toMatch(
      /^user \(2\d{3}-.+\)\nMy name is Ada\.\n/,
    );
    expect((await fairlead(["chat-session", "rename", sessionId, "Ada"])).out).toBe(`${sessionId} Ada\n`);
    expect((await fairlead(["chat-session", "list", "--search", "ada"])).out).toMatch(`${sessionId}  Ada`);
    const exported = await fairlead(["chat-session", "export", sessionId]);
    expect(JSON.parse(exported.out)).toMatchObject({ session: { title: "Ada", messageCount: 4 } });
    expect((await fairlead(["chat-session", "delete", sessionId])).code).toBe(0);
    const gone = await fairlead(["chat", "--session", sessionId, "Hm"]);
    expect(gone.code).toBe(1);
    expect(gone.notes).toContain("session_not_found");
  });
});
