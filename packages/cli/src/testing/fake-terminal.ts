import { Interrupted } from "../cli-error.ts";
import type { Terminal } from "../terminal/terminal.ts";

export interface FakeTerminal extends Terminal {
  /** Everything printed to stdout and stderr. */
  readonly printed: { out: string; notes: string };
  readonly exits: number[];
  /** Simulates Ctrl-C. */
  interrupt(): void;
}

export interface FakeTerminalOptions {
  /** Contents of stdin; if omitted, stdin is a terminal. */
  readonly input?: string;
  /** The answer to a prompt. */
  readonly typed?: string;
  /** Messages typed at the prompt, followed by its end. Null is Ctrl-C. */
  readonly messages?: readonly (string | null)[];
}

export function fakeTerminal({ input, typed = "", messages = [] }: FakeTerminalOptions = {}): FakeTerminal {
  const printed = { out: "", notes: "" };
  const listeners = new Set<() => void>();
  const exits: number[] = [];
  const waiting = [...messages];
  const note = (text: string): void => void (printed.notes += `${text}\n`);
  return {
    printed,
    exits,
    out: (text) => void (printed.out += text),
    note,
    inputIsInteractive: input === undefined,
    outputIsInteractive: input === undefined,
    readInput: () => Promise.resolve(input ?? ""),
    ask: (question) => {
      note(question);
      return Promise.resolve(typed);
    },
    openPrompt: () => ({
      read: (question) => {
        note(question.trimEnd());
        const next = waiting.shift();
        return next === null ? Promise.reject(new Interrupted()) : Promise.resolve(next ?? null);
      },
    }),
    busy: (what) => {
      note(`${what} …`);
      return Promise.resolve(note);
    },
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
