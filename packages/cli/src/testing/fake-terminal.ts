import type { Terminal } from "../terminal.ts";

export interface FakeTerminal extends Terminal {
  /** All that was printed as result, and all notes. */
  readonly printed: { out: string; notes: string };
  readonly exits: number[];
  /** What Ctrl-C does. */
  interrupt(): void;
}

/** @param input what stands on standard input; without it, somebody sits at the terminal. */
export function fakeTerminal(input?: string): FakeTerminal {
  const printed = { out: "", notes: "" };
  const listeners = new Set<() => void>();
  const exits: number[] = [];
  return {
    printed,
    exits,
    out: (text) => void (printed.out += text),
    note: (text) => void (printed.notes += `${text}\n`),
    inputIsInteractive: input === undefined,
    readInput: () => Promise.resolve(input ?? ""),
    onInterrupt: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    exitNow: (code) => void exits.push(code),
    interrupt: () => {
      for (const listener of listeners) listener();
    },
  };
}
