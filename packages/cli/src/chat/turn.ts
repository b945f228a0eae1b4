import { CliError, Interrupted } from "../cli-error.ts";
import { BrokenAnswer } from "../event-stream.ts";
import type { Terminal } from "../terminal.ts";
import { visible, visibleLines } from "../visible.ts";
import { advised } from "./advice.ts";
import type { ChatClient, Turn } from "./chat-client.ts";

/** One turn at a terminal: streamed as it comes, and stopped by Ctrl-C. */

/** What a stopped answer may take to end by itself. */
const STOP_MS = 5000;

export interface TurnDeps {
  readonly client: ChatClient;
  readonly terminal: Terminal;
  /** Told which session it is, whatever becomes of the turn. */
  readonly onSession: (id: string) => void;
}

/**
 * Prints the answer. The first Ctrl-C stops it and keeps what has come, a second one leaves.
 * @throws CliError that says how to go on; Interrupted for the second Ctrl-C.
 */
export async function runTurn(
  { client, terminal, onSession }: TurnDeps,
  turn: Omit<Turn, "signal">,
): Promise<"answered" | "stopped"> {
  const leaving = new AbortController();
  let sessionId = turn.sessionId;
  let interrupts = 0;
  let patience: NodeJS.Timeout | undefined;
  const release = terminal.onInterrupt(() => {
    interrupts++;
    if (interrupts > 1 || sessionId === null) return leaving.abort();
    // A server may let an answer run on that nobody reads any more; being told ends it.
    client.stop(sessionId).catch(() => leaving.abort());
    patience = setTimeout(() => leaving.abort(), STOP_MS);
  });
  const line = new AnswerLine(terminal);
  try {
    const listener = {
      onSession: (id: string) => onSession((sessionId = id)),
      onText: (piece: string) => line.add(piece),
    };
    const { status, reason } = await client.ask({ ...turn, signal: leaving.signal }, listener);
    line.end();
    if (interrupts === 0 && status === "incomplete") terminal.note(cutOff(reason));
  } catch (error) {
    line.end();
    if (interrupts === 0) throw explained(error, sessionId);
  } finally {
    clearTimeout(patience);
    release();
  }
  if (interrupts > 1) throw new Interrupted();
  return interrupts > 0 ? "stopped" : "answered";
}

/** An answer on the terminal; whatever happens, the next thing begins on a line of its own. */
class AnswerLine {
  readonly #terminal: Terminal;
  #open = false;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  add(piece: string): void {
    if (piece === "") return;
    this.#terminal.out(this.#terminal.outputIsInteractive ? visibleLines(piece) : piece);
    this.#open = !piece.endsWith("\n");
  }

  end(): void {
    if (this.#open) this.#terminal.out("\n");
    this.#open = false;
  }
}

/** How to go on with a session from the shell. */
export function resumeCommand(sessionId: string): string {
  return `fairlead chat --session ${visible(sessionId)}`;
}

function cutOff(reason: string | null): string {
  return reason === null ? "(the answer is incomplete)" : `(the answer was cut off: ${visible(reason)})`;
}

function explained(error: unknown, sessionId: string | null): unknown {
  if (!(error instanceof BrokenAnswer)) return advised(error);
  const goOn = sessionId === null ? "" : `: \`${resumeCommand(sessionId)}\` goes on`;
  const kept = `What had come is kept${goOn}. The same question once more gets a new answer and is not asked twice.`;
  return new CliError(`${visibleLines(error.message)}\n${kept}`, { cause: error });
}
