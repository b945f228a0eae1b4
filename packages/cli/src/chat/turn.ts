import { CliError, Interrupted } from "../cli-error.ts";
import { BrokenAnswer } from "../terminal/event-stream.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { visible, visibleLines } from "../terminal/visible.ts";
import { advised } from "./advice.ts";
import type { ChatClient, Turn } from "./chat-client.ts";

/** One turn in a terminal: streams the response, stops it on Ctrl-C. */

/** Time for a stopped response to end on its own. */
const STOP_MS = 5000;

export interface TurnDeps {
  readonly client: ChatClient;
  readonly terminal: Terminal;
  /** Called with the session ID, even if the turn fails. */
  readonly onSession: (id: string) => void;
}

/**
 * Prints the response. The first Ctrl-C stops it and keeps the partial text, the second exits.
 * @throws CliError that says how to continue; Interrupted on the second Ctrl-C.
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
    // Disconnecting may not stop the response on the server, so stop it explicitly.
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

/** Prints a response so that later output starts on its own line. */
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

/** The shell command that continues a session. */
export function resumeCommand(sessionId: string): string {
  return `fairlead chat --session ${visible(sessionId)}`;
}

function cutOff(reason: string | null): string {
  return reason === null ? "(the response is incomplete)" : `(the response was cut off: ${visible(reason)})`;
}

function explained(error: unknown, sessionId: string | null): unknown {
  if (!(error instanceof BrokenAnswer)) return advised(error);
  const goOn = sessionId === null ? "" : ` Continue with \`${resumeCommand(sessionId)}\`.`;
  const kept = `The partial response is saved.${goOn} If you ask the same question again, it is not stored twice.`;
  return new CliError(`${visibleLines(error.message)}\n${kept}`, { cause: error });
}
