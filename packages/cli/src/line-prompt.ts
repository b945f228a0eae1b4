import { createInterface, type Interface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { Interrupted } from "./cli-error.ts";

/** A person at a terminal who writes messages. */
export interface Prompt {
  /** @returns the next message, or null at the end of the input (Ctrl-D). @throws Interrupted for Ctrl-C on an empty line. */
  read(question: string): Promise<string | null>;
}

export interface LinePromptOptions {
  readonly input: Readable;
  readonly output: Writable;
  /** What Tab completes. */
  readonly commands: readonly string[];
}

/** Lines that follow one another this fast were pasted together, and are one message. */
const PASTE_MS = 25;
const HISTORY = 500;
const MORE = "… ";

/**
 * Messages by node:readline, with its editing and history. Between two of them the terminal is as it was, so that Ctrl-C is a signal
 * then, and what is typed ahead waits.
 */
export class LinePrompt implements Prompt {
  readonly #options: LinePromptOptions;
  #history: string[] = [];

  constructor(options: LinePromptOptions) {
    this.#options = options;
  }

  read(question: string): Promise<string | null> {
    const { input, output, commands } = this.#options;
    const lines = createInterface({
      input,
      output,
      history: [...this.#history],
      historySize: HISTORY,
      removeHistoryDuplicates: true,
      completer: (typed: string): [string[], string] => [commands.filter((each) => each.startsWith(typed)), typed],
    });
    lines.on("history", (all: string[]) => void (this.#history = all));
    return readMessage(lines, { question, output });
  }
}

function readMessage(
  lines: Interface,
  { question, output }: { readonly question: string; readonly output: Writable },
): Promise<string | null> {
  const { promise, resolve, reject } = Promise.withResolvers<string | null>();
  let message: string[] = [];
  let submitting: NodeJS.Timeout | undefined;
  const show = (prompt: string): void => {
    lines.setPrompt(prompt);
    lines.prompt(true);
  };
  /** Ctrl-D, or a terminal that is gone. */
  const onClose = (): void => {
    clearTimeout(submitting);
    output.write("\n");
    resolve(message.length > 0 ? message.join("\n") : null);
  };
  const submit = (): void => {
    // What was pasted may end without a line break.
    if (lines.line !== "" || message.at(-1)?.endsWith("\\")) return show(MORE);
    lines.off("close", onClose);
    resolve(message.map((line) => line.replace(/\\$/, "")).join("\n"));
    lines.close();
  };
  lines.on("line", (line) => {
    message.push(line);
    clearTimeout(submitting);
    submitting = setTimeout(submit, PASTE_MS);
  });
  lines.on("SIGINT", () => {
    output.write("^C\n");
    if (lines.line === "" && message.length === 0) {
      lines.off("close", onClose);
      reject(new Interrupted());
      return lines.close();
    }
    message = [];
    clearTimeout(submitting);
    lines.write(null, { ctrl: true, name: "e" });
    lines.write(null, { ctrl: true, name: "u" });
    show(question);
  });
  lines.on("close", onClose);
  show(question);
  return promise;
}
