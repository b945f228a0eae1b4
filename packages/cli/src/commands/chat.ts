import type { ChatSession } from "@fairlead/protocol/chat";
import type { Command } from "commander";
import { advised } from "../chat/advice.ts";
import { ChatClient, type Turn } from "../chat/chat-client.ts";
import { ChatLoop } from "../chat/chat-loop.ts";
import { resumeCommand, runTurn } from "../chat/turn.ts";
import { Interrupted, UsageError } from "../cli-error.ts";
import {
  addInferenceOptions,
  addProjectOption,
  type ClientOptions,
  inferenceHost,
  platformHost,
  settingsFrom,
} from "../client-options.ts";
import type { ClientSettings } from "../config.ts";
import type { Context } from "../context.ts";
import type { Terminal } from "../terminal.ts";
import { askOnce } from "./ask-once.ts";

interface ChatOptions extends ClientOptions {
  readonly model?: string;
  /** An id, or `new`. */
  readonly session?: string;
  readonly continue?: boolean;
}

export function addChatCommand(program: Command, context: Context): void {
  const command = program
    .command("chat")
    .description("talk to a model: a stored session, or a single question")
    .argument("[message...]", "one question; without it a chat begins, or standard input is the question")
    .option("--session <id>", "go on with this session; `new` begins one")
    .option("--continue", "go on with the session that was used last")
    .option("--model <provider/model>", "the model (FAIRLEAD_MODEL; else the session's, else the project's)")
    .option("--base-url <url>", "the platform host (FAIRLEAD_BASE_URL; else that of the last login)");
  addProjectOption(addInferenceOptions(command))
    .addHelpText("after", HELP)
    .action((words: string[], options: ChatOptions) => chat(context, words, options));
}

const HELP = `
Chats are stored sessions of yours on the platform host, and need you to be signed in. A single question is one too, unless a project key
is set (FAIRLEAD_API_KEY) and neither --session nor --continue is given: it is then put to the inference host as programs do it, and nothing
is stored. In a chat, /help lists commands, Ctrl-C stops an answer and keeps what has come, a second Ctrl-C leaves.

Examples:
  fairlead chat
  fairlead chat --continue
  fairlead chat What is 2+2?
  git diff | fairlead chat --session new --model attic/tinychat-6m`;

async function chat(context: Context, words: readonly string[], options: ChatOptions): Promise<void> {
  const { terminal } = context;
  if (options.session !== undefined && options.continue) {
    throw new UsageError("--session and --continue both say which session: give one of them");
  }
  const settings = settingsFrom(options, context.env, options.model);
  if (words.length === 0 && terminal.inputIsInteractive) return talk(context, settings, options);
  const question = await questionFrom(terminal, words);
  const isStored = options.session !== undefined || options.continue || settings.find("FAIRLEAD_API_KEY") === null;
  if (isStored) return askInSession(context, { settings, question }, options);
  const model = settings.required("FAIRLEAD_MODEL");
  return askOnce(terminal, { host: inferenceHost(settings), model, question, json: options.json === true });
}

async function questionFrom(terminal: Terminal, words: readonly string[]): Promise<string> {
  const text = words.length > 0 ? words.join(" ") : (await terminal.readInput()).trim();
  if (!text) throw new UsageError("standard input is empty: there is nothing to ask");
  return text;
}

async function talk(context: Context, settings: ClientSettings, options: ChatOptions): Promise<void> {
  if (options.json) throw new UsageError("--json is for a single question: fairlead chat --json What is 2+2?");
  const client = new ChatClient(platformHost(context, options));
  const session = await sessionOf(client, options);
  const { terminal, ids } = context;
  await new ChatLoop({ client, terminal, ids }, { session, model: modelOf(settings, session, options) }).run();
}

async function askInSession(
  { terminal, ids, ...context }: Context,
  { settings, question }: { readonly settings: ClientSettings; readonly question: string },
  options: ChatOptions,
): Promise<void> {
  const client = new ChatClient(platformHost({ terminal, ids, ...context }, options));
  const session = await sessionOf(client, options);
  const turn = {
    sessionId: session?.id ?? null,
    text: question,
    model: modelOf(settings, session, options),
    idempotencyKey: ids.next("request"),
  };
  if (options.json) {
    return printWhole(terminal, client, turn);
  }
  let { sessionId } = turn;
  const onSession = (id: string): void => void (sessionId = id);
  const end = await runTurn({ client, terminal, onSession }, turn);
  if (sessionId !== null) terminal.note(`\`${resumeCommand(sessionId)}\` goes on.`);
  if (end === "stopped") throw new Interrupted();
}

async function printWhole(terminal: Terminal, client: ChatClient, turn: Omit<Turn, "signal">): Promise<void> {
  const interrupt = new AbortController();
  const release = terminal.onInterrupt(() => interrupt.abort());
  try {
    const answer = await client.askWhole({ ...turn, signal: interrupt.signal });
    terminal.out(`${JSON.stringify(answer, null, 2)}\n`);
  } catch (error) {
    throw interrupt.signal.aborted ? new Interrupted() : error;
  } finally {
    release();
  }
}

/** @returns null for a new one. */
async function sessionOf(client: ChatClient, options: ChatOptions): Promise<ChatSession | null> {
  if (options.continue) {
    const [latest] = await client.list(undefined, { limit: 1 });
    if (latest === undefined) throw new UsageError("there is no session yet that could go on");
    return latest;
  }
  if (options.session === undefined || options.session === "new") return null;
  return client.get(options.session).catch((error: unknown) => {
    throw advised(error);
  });
}

/** The environment's model is for new sessions; one that goes on keeps its own unless somebody says otherwise. */
function modelOf(settings: ClientSettings, session: ChatSession | null, { model }: ChatOptions): string | null {
  return model ?? (session === null ? settings.find("FAIRLEAD_MODEL") : null);
}
