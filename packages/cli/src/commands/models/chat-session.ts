import type { ChatMessage } from "@fairlead/protocol/chat";
import type { Command } from "commander";
import { ChatClient } from "../../chat/chat-client.ts";
import { sessionTable } from "../../chat/session-table.ts";
import type { CommandContext } from "../../context.ts";
import {
  addPlatformOptions,
  addProjectOption,
  type ClientOptions,
  platformHost,
} from "../../platform/client-options.ts";
import { addLimitOption, type ListOptions } from "../../terminal/list-all.ts";
import { print } from "../../terminal/output.ts";
import { visible, visibleLines } from "../../terminal/visible.ts";

interface SearchOptions extends ClientOptions, ListOptions {
  readonly search?: string;
}

const NEWEST = 20;

export function addChatSessionCommands(program: Command, context: CommandContext): void {
  const session = program.command("chat-session").description("chat sessions: your stored chats in a project");
  const command = (name: string): Command => addProjectOption(addPlatformOptions(session.command(name)));
  addLimitOption(command("list"), NEWEST)
    .description("list your sessions in a project, most recently used first")
    .option("--search <text>", "only sessions with this text in the title or messages")
    .addHelpText("after", "\nExamples:\n  fairlead chat-session list\n  fairlead chat-session list --search garden")
    .action((options: SearchOptions) => listSessions(context, options));
  addLimitOption(command("show"))
    .description("show the messages of a session")
    .argument("<id>")
    .addHelpText("after", "\nExample:\n  fairlead chat-session show ses_01kc3b6q2v8r5x0m7n4t9w1yza")
    .action((id: string, options: ClientOptions & ListOptions) => showSession(context, id, options));
  command("rename")
    .description("set a session's title; later messages do not change it")
    .argument("<id>")
    .argument("<title>")
    .addHelpText("after", '\nExample:\n  fairlead chat-session rename ses_01kc3b6q2v8r5x0m7n4t9w1yza "Garden plans"')
    .action((id: string, title: string, options: ClientOptions) => renameSession(context, { id, title }, options));
  command("delete")
    .description("permanently delete a session and all of its messages")
    .argument("<id>")
    .addHelpText("after", "\nExample:\n  fairlead chat-session delete ses_01kc3b6q2v8r5x0m7n4t9w1yza")
    .action((id: string, options: ClientOptions) => deleteSession(context, id, options));
  command("export")
    .description("print a session as JSON: every item with its time, status and usage")
    .argument("<id>")
    .addHelpText("after", "\nExample:\n  fairlead chat-session export ses_01kc3b6q2v8r5x0m7n4t9w1yza > garden.json")
    .action((id: string, options: ClientOptions) => exportSession(context, id, options));
}

function clientOf(context: CommandContext, options: ClientOptions): ChatClient {
  return new ChatClient(platformHost(context, options));
}

async function listSessions(context: CommandContext, options: SearchOptions): Promise<void> {
  const sessions = await clientOf(context, options).list(options.search, options);
  const none =
    options.search === undefined ? "no sessions; start one with `fairlead chat`\n" : "no matching sessions\n";
  const text = sessions.length === 0 ? none : sessionTable(sessions);
  print(context.terminal, { sessions }, { json: options.json, text: () => text });
}

async function showSession(context: CommandContext, id: string, options: ClientOptions & ListOptions): Promise<void> {
  const messages = await clientOf(context, options).messages(id, options);
  print(context.terminal, { messages }, { json: options.json, text: () => messages.map(paragraph).join("\n") });
}

function paragraph({ role, status, createdAt, content }: ChatMessage): string {
  const state = status === "completed" ? "" : `, ${visible(status)}`;
  return `${visible(role)} (${visible(createdAt)}${state})\n${visibleLines(content)}\n`;
}

async function renameSession(
  context: CommandContext,
  { id, title }: { readonly id: string; readonly title: string },
  options: ClientOptions,
): Promise<void> {
  const renamed = await clientOf(context, options).rename(id, title);
  print(context.terminal, renamed, { json: options.json, text: (now) => `${now.id} ${visible(now.title)}\n` });
}

async function deleteSession(context: CommandContext, id: string, options: ClientOptions): Promise<void> {
  const answer = await clientOf(context, options).delete(id);
  print(context.terminal, answer, { json: options.json, text: () => `deleted ${visible(id)}\n` });
}

async function exportSession(context: CommandContext, id: string, options: ClientOptions): Promise<void> {
  print(context.terminal, await clientOf(context, options).export(id), { json: true, text: () => "" });
}
