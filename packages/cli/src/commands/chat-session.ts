import type { ChatMessage } from "@fairlead/protocol/chat";
import type { Command } from "commander";
import { ChatClient } from "../chat/chat-client.ts";
import { sessionTable } from "../chat/session-table.ts";
import { addPlatformOptions, addProjectOption, type ClientOptions, platformHost } from "../client-options.ts";
import type { Context } from "../context.ts";
import { addLimitOption, type ListOptions } from "../list-all.ts";
import { print } from "../output.ts";
import { visible, visibleLines } from "../visible.ts";

interface SearchOptions extends ClientOptions, ListOptions {
  readonly search?: string;
}

const NEWEST = 20;

export function addChatSessionCommands(program: Command, context: Context): void {
  const session = program.command("chat-session").description("chat sessions: what you talked about in a project");
  const command = (name: string): Command => addProjectOption(addPlatformOptions(session.command(name)));
  addLimitOption(command("list"), NEWEST)
    .description("list your sessions in a project, the one used last first")
    .option("--search <text>", "only those with this text in their title or messages")
    .addHelpText("after", "\nExamples:\n  fairlead chat-session list\n  fairlead chat-session list --search garden")
    .action((options: SearchOptions) => listSessions(context, options));
  addLimitOption(command("show"))
    .description("show what was said in a session")
    .argument("<id>")
    .addHelpText("after", "\nExample:\n  fairlead chat-session show ses_01kc3b6q2v8r5x0m7n4t9w1yza")
    .action((id: string, options: ClientOptions & ListOptions) => showSession(context, id, options));
  command("rename")
    .description("give a session a title; it stays, whatever is said later")
    .argument("<id>")
    .argument("<title>")
    .addHelpText("after", '\nExample:\n  fairlead chat-session rename ses_01kc3b6q2v8r5x0m7n4t9w1yza "Garden plans"')
    .action((id: string, title: string, options: ClientOptions) => renameSession(context, { id, title }, options));
  command("delete")
    .description("delete a session and all that was said in it, for good")
    .argument("<id>")
    .addHelpText("after", "\nExample:\n  fairlead chat-session delete ses_01kc3b6q2v8r5x0m7n4t9w1yza")
    .action((id: string, options: ClientOptions) => deleteSession(context, id, options));
  command("export")
    .description("print a whole session as JSON: every item with its time, status and usage")
    .argument("<id>")
    .addHelpText("after", "\nExample:\n  fairlead chat-session export ses_01kc3b6q2v8r5x0m7n4t9w1yza > garden.json")
    .action((id: string, options: ClientOptions) => exportSession(context, id, options));
}

function clientOf(context: Context, options: ClientOptions): ChatClient {
  return new ChatClient(platformHost(context, options));
}

async function listSessions(context: Context, options: SearchOptions): Promise<void> {
  const sessions = await clientOf(context, options).list(options.search, options);
  const none =
    options.search === undefined ? "no sessions yet: `fairlead chat` begins one\n" : "no session holds that\n";
  const text = sessions.length === 0 ? none : sessionTable(sessions);
  print(context.terminal, { sessions }, { json: options.json, text: () => text });
}

async function showSession(context: Context, id: string, options: ClientOptions & ListOptions): Promise<void> {
  const messages = await clientOf(context, options).messages(id, options);
  print(context.terminal, { messages }, { json: options.json, text: () => messages.map(paragraph).join("\n") });
}

function paragraph({ role, status, createdAt, content }: ChatMessage): string {
  const state = status === "completed" ? "" : `, ${visible(status)}`;
  return `${visible(role)} (${visible(createdAt)}${state})\n${visibleLines(content)}\n`;
}

async function renameSession(
  context: Context,
  { id, title }: { readonly id: string; readonly title: string },
  options: ClientOptions,
): Promise<void> {
  const renamed = await clientOf(context, options).rename(id, title);
  print(context.terminal, renamed, { json: options.json, text: (now) => `${now.id} ${visible(now.title)}\n` });
}

async function deleteSession(context: Context, id: string, options: ClientOptions): Promise<void> {
  const answer = await clientOf(context, options).delete(id);
  print(context.terminal, answer, { json: options.json, text: () => `deleted ${visible(id)}\n` });
}

async function exportSession(context: Context, id: string, options: ClientOptions): Promise<void> {
  print(context.terminal, await clientOf(context, options).export(id), { json: true, text: () => "" });
}
