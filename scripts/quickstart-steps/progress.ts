/** What the quickstart says while it works, and how it fails. */

export class QuickstartError extends Error {}

export class Interrupted extends Error {}

const WIDTH = 44;

export function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Listens to Ctrl-C for the rest of the process. What has begun is finished first, so that nothing is made twice. */
export function interruption(): AbortSignal {
  const controller = new AbortController();
  // A reader that leaves early (`| head`) must not end the work half-way.
  process.stdout.on("error", () => undefined);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => controller.abort());
  return controller.signal;
}

export interface Step {
  /** Shown behind "ok": what was found or done. */
  note(text: string): void;
  /** A line of its own, for steps that take long. */
  detail(text: string): void;
}

/** Runs one step with one progress line. */
export async function step<T>(title: string, interrupt: AbortSignal, run: (step: Step) => Promise<T>): Promise<T> {
  if (interrupt.aborted) throw new Interrupted();
  const started = performance.now();
  let note = "";
  let inLine = true;
  process.stdout.write(`  ${title.padEnd(WIDTH)}`);
  const reporter: Step = {
    note: (text) => void (note = `  ${text}`),
    detail: (text) => {
      process.stdout.write(`${inLine ? "\n" : ""}    ${text}\n`);
      inLine = false;
    },
  };
  try {
    const result = await run(reporter);
    const seconds = String(Math.floor((performance.now() - started) / 1000)).padStart(4);
    say(`${inLine ? "" : `  ${"".padEnd(WIDTH)}`}ok ${seconds}s${note}`);
    return result;
  } catch (error) {
    const outcome = interrupt.aborted ? "stopped" : "failed";
    say(inLine ? outcome : `  ${"".padEnd(WIDTH)}${outcome}`);
    throw interrupt.aborted ? new Interrupted() : error;
  }
}

export interface Wait<T> {
  readonly seconds: number;
  readonly everyMs: number;
  readonly interrupt: AbortSignal;
  /** Undefined: not yet. Throwing ends the wait. */
  readonly ask: () => Promise<T | undefined>;
}

/** @returns null when the time is up. */
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
