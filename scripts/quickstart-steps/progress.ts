/** Progress output and errors of the quickstart. */

export class QuickstartError extends Error {}

export class Interrupted extends Error {}

const WIDTH = 44;

export function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Handles Ctrl-C for the rest of the process. The current action is finished first, so that nothing is created twice. */
export function interruption(): AbortSignal {
  const controller = new AbortController();
  // A closed pipe (`| head`) must not interrupt the work.
  process.stdout.on("error", () => undefined);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => controller.abort());
  return controller.signal;
}

export interface Step {
  /** Shown after "ok". */
  note(text: string): void;
  /** Prints a separate line, for long steps. */
  detail(text: string): void;
}

/** Runs a step with a progress line. */
export async function step<T>(title: string, interrupt: AbortSignal, run: (step: Step) => Promise<T>): Promise<T> {
  if (interrupt.aborted) throw new Interrupted();
  const started = performance.now();
  let note = "";
  let inLine = true;
  process.stdout.write(`  ${title.padEnd(WIDTH)}`);
  const stopTicking = tick(title, () => inLine);
  const reporter: Step = {
    note: (text) => void (note = `  ${text}`),
    detail: (text) => {
      process.stdout.write(`${inLine ? "\n" : ""}    ${text}\n`);
      inLine = false;
    },
  };
  try {
    const result = await run(reporter);
    stopTicking();
    const seconds = String(Math.floor((performance.now() - started) / 1000)).padStart(4);
    say(`${inLine ? "" : `  ${"".padEnd(WIDTH)}`}ok ${seconds}s${note}`);
    return result;
  } catch (error) {
    stopTicking();
    const outcome = interrupt.aborted ? "stopped" : "failed";
    say(inLine ? outcome : `  ${"".padEnd(WIDTH)}${outcome}`);
    throw interrupt.aborted ? new Interrupted() : error;
  }
}

/** Shows the elapsed time in a terminal. @returns a function that stops it and clears the line. */
function tick(title: string, isInLine: () => boolean): () => void {
  if (!process.stdout.isTTY) return () => undefined;
  const started = performance.now();
  const start = `\r  ${title.padEnd(WIDTH)}`;
  const timer = setInterval(() => {
    const seconds = Math.floor((performance.now() - started) / 1000);
    if (isInLine()) process.stdout.write(`${start}${seconds}s `);
  }, 1000);
  return () => {
    clearInterval(timer);
    if (isInLine()) process.stdout.write(`${start}\u001b[K`);
  };
}

export interface Wait<T> {
  readonly seconds: number;
  readonly everyMs: number;
  readonly interrupt: AbortSignal;
  /** Returns undefined to keep waiting. Throwing ends the wait. */
  readonly ask: () => Promise<T | undefined>;
}

/** @returns null on timeout. */
export async function waitFor<T>({ seconds, everyMs, interrupt, ask }: Wait<T>): Promise<T | null> {
  const deadline = performance.now() + seconds * 1000;
  while (performance.now() < deadline) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (interrupt.aborted) throw new Interrupted();
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
  return null;
}
