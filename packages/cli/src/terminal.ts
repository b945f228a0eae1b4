import { text } from "node:stream/consumers";

/** What a command sees of the terminal it runs in. */
export interface Terminal {
  /** Results. Ends where the text ends: a line needs its own line break. */
  out(text: string): void;
  /** Notes and errors, one line or more. */
  note(text: string): void;
  readonly inputIsInteractive: boolean;
  /** All of standard input. */
  readInput(): Promise<string>;
  /** Calls back on every Ctrl-C and request to stop, until the answer is called. */
  onInterrupt(listener: () => void): () => void;
  /** Ends the process without waiting for anything. */
  exitNow(code: number): void;
}

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

export function processTerminal(): Terminal {
  // The reader of a pipe may leave early (`fairlead models | head -1`); that is no failure.
  process.stdout.on("error", () => process.exit(0));
  return {
    out: (value) => void process.stdout.write(value),
    note: (value) => void process.stderr.write(`${value}\n`),
    inputIsInteractive: process.stdin.isTTY === true,
    readInput: () => text(process.stdin),
    onInterrupt: (listener) => {
      for (const signal of SIGNALS) process.on(signal, listener);
      return () => {
        for (const signal of SIGNALS) process.off(signal, listener);
      };
    },
    exitNow: (code) => process.exit(code),
  };
}
