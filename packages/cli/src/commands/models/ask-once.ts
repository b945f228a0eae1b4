import { z } from "zod";
import { CliError, Interrupted } from "../../cli-error.ts";
import { readChatStream } from "../../platform/chat-stream.ts";
import { callJson, type Host, send } from "../../platform/http-client.ts";
import type { Terminal } from "../../terminal/terminal.ts";

/** A single question to the inference host; nothing is stored. */

const PATH = "/v1/chat/completions";

export interface AskOnceOptions {
  readonly host: Host;
  readonly model: string;
  readonly question: string;
  readonly json: boolean;
}

/** Prints the response. @throws CliError, Interrupted */
export async function askOnce(terminal: Terminal, { host, model, question, json }: AskOnceOptions): Promise<void> {
  const body = { model, messages: [{ role: "user", content: question }] };
  const interrupt = new AbortController();
  const release = terminal.onInterrupt(() => interrupt.abort());
  try {
    await (json ? printWhole : printStream)({ terminal, host, body, signal: interrupt.signal });
  } catch (error) {
    if (interrupt.signal.aborted) throw new Interrupted();
    throw error;
  } finally {
    release();
  }
}

interface Asking {
  readonly terminal: Terminal;
  readonly host: Host;
  readonly body: object;
  readonly signal: AbortSignal;
}

async function printWhole({ terminal, host, body, signal }: Asking): Promise<void> {
  const answer = await callJson(host, { method: "POST", path: PATH, body, signal }, z.looseObject({}));
  terminal.out(`${JSON.stringify(answer, null, 2)}\n`);
}

async function printStream({ terminal, host, body, signal }: Asking): Promise<void> {
  const call = { method: "POST", path: PATH, body: { ...body, stream: true }, signal } as const;
  const response = await send(host, call);
  if (!response.body) throw new CliError("The inference host returned an empty response.");
  let started = false;
  try {
    for await (const piece of readChatStream(response.body)) {
      started = true;
      terminal.out(piece);
    }
  } finally {
    // After a broken response, the shell prompt must start on its own line.
    if (started) terminal.out("\n");
  }
}
