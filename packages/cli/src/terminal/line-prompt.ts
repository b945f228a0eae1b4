import { createInterface, type Interface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { Interrupted } from "../cli-error.ts";

/** Reads messages from a terminal. */
export interface Prompt {
  /** @returns the next message, or null at the end of the input (Ctrl-D). @throws Interrupted on Ctrl-C in an empty line. */
  read(question: string): Promise<string | null>;
}

export interface LinePromptOptions {
  readonly input: Readable;
  readonly output: Writable;
  /** Completed by Tab. */
  readonly commands: readonly string[];
}

/** Lines that arrive this fast were pasted and form one message. */
const PASTE_MS = 25;
const HISTORY = 500;
const MORE = "… ";

/**
 * Reads messages with node:readline. Between messages the terminal is in its normal mode: Ctrl-C is a signal and
 * typed-ahead input waits.
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
  /** Ctrl-D, or a closed terminal. */
  const onClose = (): void => {
    clearTimeout(submitting);
    output.write("\n");
    resolve(message.length > 0 ? message.join("\n") : null);
  };
  const submit = (): void => {
    // A pasted text may end without a line break.
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
