import type { Command } from "commander";
import { z } from "zod";
import { readChatStream } from "../chat-stream.ts";
import { CliError, Interrupted, UsageError } from "../cli-error.ts";
import { addInferenceOptions, type ClientOptions, inferenceHost, settingsFrom } from "../client-options.ts";
import type { Context } from "../context.ts";
import { callJson, type Host, send } from "../http-client.ts";
import type { Terminal } from "../terminal.ts";

interface ChatOptions extends ClientOptions {
  readonly model?: string;
}

const PATH = "/v1/chat/completions";

export function addChatCommand(program: Command, context: Context): void {
  addInferenceOptions(program.command("chat"))
    .description("ask a model once and stream its answer")
    .argument("[message...]", "the question; standard input when there is none")
    .option("--model <provider/model>", "the model (FAIRLEAD_MODEL)")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead chat What is 2+2?\n  git diff | fairlead chat --model attic/tinychat-6m",
    )
    .action((words: string[], options: ChatOptions) => chat(context, words, options));
}

async function chat({ terminal, env }: Context, words: readonly string[], options: ChatOptions): Promise<void> {
  const settings = settingsFrom(options, env, options.model);
  const host = inferenceHost(settings);
  const model = settings.required("FAIRLEAD_MODEL");
  const content = await question(terminal, words);
  const body = { model, messages: [{ role: "user", content }] };
  const interrupt = new AbortController();
  const release = terminal.onInterrupt(() => interrupt.abort());
  try {
    await (options.json ? printWhole : printStream)({ terminal, host, body, signal: interrupt.signal });
  } catch (error) {
    if (interrupt.signal.aborted) throw new Interrupted();
    throw error;
  } finally {
    release();
  }
}

async function question(terminal: Terminal, words: readonly string[]): Promise<string> {
  if (words.length > 0) return words.join(" ");
  if (terminal.inputIsInteractive) throw new UsageError("say what to ask: fairlead chat What is 2+2?");
  const text = (await terminal.readInput()).trim();
  if (!text) throw new UsageError("standard input is empty: there is nothing to ask");
  return text;
}

interface Turn {
  readonly terminal: Terminal;
  readonly host: Host;
  readonly body: object;
  readonly signal: AbortSignal;
}

async function printWhole({ terminal, host, body, signal }: Turn): Promise<void> {
  const answer = await callJson(host, { method: "POST", path: PATH, body, signal }, z.looseObject({}));
  terminal.out(`${JSON.stringify(answer, null, 2)}\n`);
}

async function printStream({ terminal, host, body, signal }: Turn): Promise<void> {
  const call = { method: "POST", path: PATH, body: { ...body, stream: true }, signal } as const;
  const response = await send(host, call);
  if (!response.body) throw new CliError("The inference host answered without a body.");
  let started = false;
  try {
    for await (const piece of readChatStream(response.body)) {
      started = true;
      terminal.out(piece);
    }
  } finally {
    // An answer that broke off must not leave the shell's prompt in mid-line.
    if (started) terminal.out("\n");
  }
}
