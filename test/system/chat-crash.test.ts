import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { ChatCaller } from "../support/chat-caller.ts";
import { CHAT_MODEL, chatProviders } from "../support/chat-stage.ts";
import { ScriptedDialects } from "../support/scripted-dialects.ts";
import { ScriptedEngine } from "../support/scripted-engine.ts";
import { HELLO, NEVER_ENDS, RECALL } from "../support/scripted-model.ts";
import { StartedServer } from "../support/started-server.ts";
import { waitFor } from "../support/wait-for.ts";

/** `kill -9` of the server in mid-answer, and what a person finds after its next start. */

const createdProject = z.object({ project: z.object({ id: z.string() }) });
const dataDir = mkdtempSync(join(tmpdir(), "fairlead-chat-crash-"));
const upstream = new ScriptedDialects();
const engine = new ScriptedEngine();
let port = 0;
let server: StartedServer;
let projectId = "";

async function start(): Promise<ChatCaller> {
  server = await StartedServer.start({
    dataDir,
    providers: { platform: chatProviders(port) },
    inference: { defaultModel: CHAT_MODEL },
  });
  const token = await server.asOperator(async (admin) => {
    await admin.createUser({ email: "ann@example.org", name: "Ann", platformAdmin: false });
    return (await admin.createToken({ email: "ann@example.org" })).token;
  });
  return new ChatCaller({ url: server.url, token, projectId });
}

beforeAll(async () => {
  engine.script = upstream.script;
  port = await engine.start();
});
afterAll(async () => {
  await server.remove();
  await engine.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

test("after a crash during a response, the stored part is shown as incomplete and the session continues", async () => {
  const first = await start();
  const made = await first.call("POST", "/v1/projects", { body: { name: "Crash" } });
  projectId = createdProject.parse(await made.json()).project.id;
  const before = new ChatCaller({ ...first.identity, projectId });
  const { session } = await before.turn("My name is Ada.");

  const running = await before.begin(NEVER_ENDS, { session });
  const partial = await waitFor("a part of the answer to be kept", 20_000, async () => {
    const last = (await before.messages(session)).at(-1);
    return last?.role === "assistant" && last.content !== HELLO && last.content;
  });
  expect(HELLO.startsWith(partial)).toBe(true);
  await server.kill();
  await running.text().catch(() => undefined);
  await server.remove();

  const after = await start();
  const messages = await after.messages(session);
  expect(messages.map(({ role, status }) => `${role} ${status}`)).toEqual([
    "user completed",
    "assistant completed",
    "user completed",
    "assistant incomplete",
  ]);
  expect(messages.at(-1)?.content).toBe(partial);
  const next = await after.turn(RECALL, { session });
  expect(next).toMatchObject({ status: 200, done: true, text: `My name is Ada. | ${NEVER_ENDS}` });
});
