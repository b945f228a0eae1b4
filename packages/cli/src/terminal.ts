import { text } from "node:stream/consumers";
import { Interrupted } from "./cli-error.ts";
import { LinePrompt, type Prompt } from "./line-prompt.ts";

/** What a command sees of the terminal it runs in. */
export interface Terminal {
  /** Results. Ends where the text ends: a line needs its own line break. */
  out(text: string): void;
  /** Notes and errors, one line or more. */
  note(text: string): void;
  readonly inputIsInteractive: boolean;
  /** Results are read by a person, at once. */
  readonly outputIsInteractive: boolean;
  /** All of standard input. */
  readInput(): Promise<string>;
  /** What somebody types; only where `inputIsInteractive`. @throws Interrupted */
  ask(question: string): Promise<string>;
  /** Messages that somebody types, one after the other; only where `inputIsInteractive`. */
  openPrompt(commands: readonly string[]): Prompt;
  /** Shows that something goes on, until the answer is called with how it ended. */
  busy(what: string): Promise<(ending: string) => void>;
  /** Calls back on every Ctrl-C and request to stop, until the answer is called. */
  onInterrupt(listener: () => void): () => void;
  /** Ends the process without waiting for anything. */
  exitNow(code: number): void;
}

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

export function processTerminal(): Terminal {
  // The reader of a pipe may leave early (`fairlead models | head -1`); that is no failure.
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

/** Some terminals have no width (a container's, at first); a line that is redrawn needs one. */
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
  // While it spins it reads the keys itself, and on Ctrl-C ends the process as if all were well.
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
