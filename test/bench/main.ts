import { type Bench, openBench } from "./bench.ts";
import { describeMachine } from "./describe-machine.ts";
import type { Run } from "./figures.ts";
import { failures } from "./figures.ts";
import { measure } from "./measure.ts";
import { helpText, type Options, readOptions, UsageError } from "./options.ts";
import { reportText } from "./report.ts";
import type { Scenario } from "./scenarios.ts";
import type { RunningTarget, Target } from "./targets.ts";

/** The bench: starts targets, runs scenarios round by round (A B C, A B C, …), prints tables. */

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

async function run(options: Options): Promise<Run[]> {
  const bench = await openBench(options);
  const interrupted = Promise.withResolvers<never>();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(signal, () => interrupted.reject(new Error("interrupted")));
  }
  try {
    return await Promise.race([runAll(bench, options), interrupted.promise]);
  } finally {
    await bench.close();
  }
}

async function runAll(bench: Bench, options: Options): Promise<Run[]> {
  const targets = options.targets.filter(available);
  const running = new Map<Target, RunningTarget>();
  for (const target of targets) running.set(target, await target.start(bench));
  const runs: Run[] = [];
  for (const scenario of options.scenarios) {
    for (let round = 1; round <= options.rounds; round++) {
      for (const [target, at] of running) {
        const done = await measure(bench, options, { scenario, target, round, running: at });
        say(progressLine(scenario, done));
        runs.push(done);
      }
    }
  }
  return runs;
}

function available(target: Target): boolean {
  const missing = target.missing?.() ?? null;
  if (missing !== null) say(`left out: ${target.name}: ${missing}`);
  return missing === null;
}

function progressLine(scenario: Scenario, done: Run): string {
  const told = scenario.figures.map((figure) => `${figure.title} ${figure.of(done)?.toFixed(2) ?? "-"}`);
  const trust = `failures ${failures(done)}, foreign ${done.foreign.toFixed(2)}`;
  return `${scenario.name.padEnd(9)} ${done.round} ${done.target.padEnd(14)} ${[...told, trust].join(", ")}`;
}

try {
  const options = readOptions(process.argv.slice(2));
  if (options === null) {
    process.stdout.write(helpText());
  } else {
    const machine = describeMachine();
    const runs = await run(options);
    const text = options.json
      ? JSON.stringify({ machine, runs })
      : `${machine}\n\n${reportText(options.scenarios, runs)}`;
    process.stdout.write(`${text}\n`);
  }
} catch (error) {
  if (!(error instanceof Error)) throw error;
  if (error instanceof UsageError) say(`${error.message}\n(--help lists the options)`);
  else say(`bench: ${error.message}`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
