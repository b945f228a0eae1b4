import type { Terminal } from "./terminal.ts";

/** Prints a response as JSON or text. */
export function print<T>(
  terminal: Terminal,
  answer: T,
  how: { json?: boolean | undefined; text: (answer: T) => string },
): void {
  terminal.out(how.json ? `${JSON.stringify(answer, null, 2)}\n` : how.text(answer));
}
