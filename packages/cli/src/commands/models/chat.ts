import type { ChatSession } from "@fairlead/protocol/chat";
import type { Command } from "commander";
import { advised } from "../../chat/advice.ts";
import { ChatClient, type Turn } from "../../chat/chat-client.ts";
import { ChatLoop } from "../../chat/chat-loop.ts";
import { resumeCommand, runTurn } from "../../chat/turn.ts";
import { Interrupted, UsageError } from "../../cli-error.ts";
import type { ClientSettings } from "../../config.ts";
import type { CommandContext } from "../../context.ts";
import {
  addInferenceOptions,
  addProjectOption,
  type ClientOptions,
  inferenceHost,
  platformHost,
  settingsFrom,
} from "../../platform/client-options.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { askOnce } from "./ask-once.ts";

interface ChatOptions extends ClientOptions {
  readonly model?: string;
  /** An ID, or `new`. */
  readonly session?: string;
  readonly continue?: boolean;
}

export function addChatCommand(program: Command, context: CommandContext): void {
  const command = program
    .command("chat")
    .description("chat with a model in a stored session, or ask a single question")
    .argument(
      "[message...]",
      "a single question; without it, starts a chat, or reads the question from stdin if stdin is not a terminal",
    )
    .option("--session <id>", "continue this session; `new` starts one")
    .option("--continue", "continue the most recently used session")
    .option("--model <provider/model>", "the model (default: $FAIRLEAD_MODEL, the session's or the project's model)")
    .option(
      "--base-url <url>",
      "URL of the platform host (default: $FAIRLEAD_BASE_URL, or the platform of the last login)",
    );
  addProjectOption(addInferenceOptions(command))
    .addHelpText("after", HELP)
    .action((words: string[], options: ChatOptions) => chat(context, words, options));
}

const HELP = `
Chats are stored as sessions on the platform host and require you to be signed in. A single question is also stored, unless a project key
is set (FAIRLEAD_API_KEY) and neither --session nor --continue is given: it is then sent to the inference host and nothing is stored.
In a chat, /help lists the commands. Ctrl-C stops a response and keeps the partial text; a second Ctrl-C exits.

Examples:
  fairlead chat
  fairlead chat --continue
  fairlead chat What is 2+2?
  git diff | fairlead chat --session new --model local/tinychat-6m`;

async function chat(context: CommandContext, words: readonly string[], options: ChatOptions): Promise<void> {
  const { terminal } = context;
  if (options.session !== undefined && options.continue) {
    throw new UsageError("set either --session or --continue, not both");
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
  if (!text) throw new UsageError("no question: stdin is empty");
  return text;
}

async function talk(context: CommandContext, settings: ClientSettings, options: ChatOptions): Promise<void> {
  if (options.json) throw new UsageError("--json requires a question: fairlead chat --json What is 2+2?");
  const client = new ChatClient(platformHost(context, options));
  const session = await sessionOf(client, options);
  const { terminal, ids } = context;
  await new ChatLoop({ client, terminal, ids }, { session, model: modelOf(settings, session, options) }).run();
}

async function askInSession(
  { terminal, ids, ...context }: CommandContext,
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
  if (sessionId !== null) terminal.note(`Continue with \`${resumeCommand(sessionId)}\`.`);
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

/** @returns null for a new session. */
async function sessionOf(client: ChatClient, options: ChatOptions): Promise<ChatSession | null> {
  if (options.continue) {
    const [latest] = await client.list(undefined, { limit: 1 });
    if (latest === undefined) throw new UsageError("no session to continue");
    return latest;
  }
  if (options.session === undefined || options.session === "new") return null;
  return client.get(options.session).catch((error: unknown) => {
    throw advised(error);
  });
}

/** FAIRLEAD_MODEL applies to new sessions only; an existing session keeps its model unless --model is set. */
function modelOf(settings: ClientSettings, session: ChatSession | null, { model }: ChatOptions): string | null {
  return model ?? (session === null ? settings.find("FAIRLEAD_MODEL") : null);
}
