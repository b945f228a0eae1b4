import { text } from "node:stream/consumers";
import { Interrupted } from "../cli-error.ts";
import { LinePrompt, type Prompt } from "./line-prompt.ts";

/** The terminal of a command. */
export interface Terminal {
  /** Writes results to stdout; adds no line break. */
  out(text: string): void;
  /** Writes lines to stderr. */
  note(text: string): void;
  readonly inputIsInteractive: boolean;
  /** Whether stdout is a terminal. */
  readonly outputIsInteractive: boolean;
  /** Reads all of stdin. */
  readInput(): Promise<string>;
  /** Prompts for a line; requires `inputIsInteractive`. @throws Interrupted */
  ask(question: string): Promise<string>;
  /** Opens a prompt for several messages; requires `inputIsInteractive`. */
  openPrompt(commands: readonly string[]): Prompt;
  /** Shows a spinner until the returned function is called with the final text. */
  busy(what: string): Promise<(ending: string) => void>;
  /** Calls the listener on SIGINT and SIGTERM until the returned function is called. */
  onInterrupt(listener: () => void): () => void;
  /** Ends the process without waiting for anything. */
  exitNow(code: number): void;
}

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

export function processTerminal(): Terminal {
  // A pipe may close early (`fairlead models | head -1`), which is not a failure.
  process.stdout.on("error", () => process.exit(0));
  const note = (value: string): void => void process.stderr.write(`${value}\n`);
  return {
    out: (value) => void process.stdout.write(value),
    note,
    inputIsInteractive: process.stdin.isTTY === true,
    outputIsInteractive: process.stdout.isTTY === true,
    readInput: () => text(process.stdin),
    ask,
    openPrompt: (commands) => new LinePrompt({ input: process.stdin, output: process.stderr, commands }),
    busy: async (what) => (canSpin() ? spin(what) : plainly(what, note)),
    onInterrupt: (listener) => {
      for (const signal of SIGNALS) process.on(signal, listener);
      return () => {
        for (const signal of SIGNALS) process.off(signal, listener);
      };
    },
    exitNow: (code) => process.exit(code),
  };
}

/** Redrawing a line needs a width, which some terminals lack (in containers, at first). */
function canSpin(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY && process.stderr.columns > 0;
}

async function ask(message: string): Promise<string> {
  const prompts = await import("@clack/prompts");
  const answer = await prompts.text({ message, output: process.stderr });
  if (prompts.isCancel(answer)) throw new Interrupted();
  return answer ?? "";
}

async function spin(what: string): Promise<(ending: string) => void> {
  const { spinner } = await import("@clack/prompts");
  const interrupted = new Interrupted();
  // The spinner handles Ctrl-C itself and exits with 0.
  const leave = (): void => {
    process.exitCode = interrupted.exitCode;
  };
  process.once("exit", leave);
  const spinning = spinner({ output: process.stderr });
  spinning.start(what);
  return (ending) => {
    process.off("exit", leave);
    spinning.stop(ending);
  };
}

function plainly(what: string, note: (text: string) => void): (ending: string) => void {
  note(`${what} …`);
  return note;
}
