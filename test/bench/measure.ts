import type { Bench } from "./bench.ts";
import type { PartUse, Run } from "./figures.ts";
import { type LoadResult, runLoad } from "./load.ts";
import { foreignCpuSeconds, untilQuiet } from "./machine.ts";
import type { Options } from "./options.ts";
import type { Scenario } from "./scenarios.ts";
import type { Part, RunningTarget, Target } from "./targets.ts";

/** How long to wait for a machine on which others work. */
const PATIENCE_MS = 5000;
/** What a run may take beyond its planned time before it is killed. */
const GRACE_MS = 30_000;

export type MeasureOptions = Pick<Options, "seconds" | "warmSeconds" | "maxForeign" | "tries">;

/** One run of a scenario, tried again while other processes disturb it; the least disturbed try is kept. */
export async function measure(
  bench: Bench,
  options: MeasureOptions,
  at: { readonly scenario: Scenario; readonly target: Target; readonly round: number; readonly running: RunningTarget },
): Promise<Run> {
  const { scenario, target, round, running } = at;
  let best: Run | null = null;
  for (let attempt = 0; attempt < options.tries; attempt++) {
    await untilQuiet(PATIENCE_MS);
    const used = scenario.fresh ? await target.start(bench) : running;
    try {
      const { result, foreign } = await runOnce(bench, options, { scenario, running: used });
      const parts = partsOf(used.parts, result);
      const disturbed = foreign > options.maxForeign;
      const run = { scenario: scenario.name, target: target.name, round, result, parts, foreign, disturbed };
      if (best === null || foreign < best.foreign) best = run;
      if (!disturbed) break;
    } finally {
      if (used !== running) await used.stop();
    }
  }
  if (best === null) throw new Error("a run needs at least one try");
  return best;
}

async function runOnce(
  { processes, loadClient }: Bench,
  { seconds, warmSeconds }: MeasureOptions,
  { scenario, running }: { readonly scenario: Scenario; readonly running: RunningTarget },
): Promise<{ result: LoadResult; foreign: number }> {
  const { port, key, model, prefix = "", parts } = running;
  const measured = scenario.onceSeconds ?? seconds;
  const args = ["-u", `http://127.0.0.1:${port}${prefix}/v1/chat/completions`, "-k", key, "-M", model];
  args.push("-t", String(measured), "-w", String(warmSeconds), ...scenario.load);
  args.push(...parts.flatMap(({ pids }) => pids).flatMap((pid) => ["-p", String(pid)]));
  const commandLine = processes.onCore(0, [loadClient, ...args]);
  const ours = processes.ids();
  const before = foreignCpuSeconds(ours);
  const started = performance.now();
  const result = await runLoad(commandLine, (measured + warmSeconds) * 1000 + GRACE_MS);
  const elapsedSeconds = (performance.now() - started) / 1000;
  // What ended meanwhile has taken its time with it.
  const foreign = Math.max(0, foreignCpuSeconds(ours) - before) / elapsedSeconds;
  return { result, foreign };
}

/** The load client tells of processes in the order in which they were named. */
function partsOf(parts: readonly Part[], { processes }: LoadResult): PartUse[] {
  let at = 0;
  return parts.map(({ name, pids }) => {
    const uses = processes.slice(at, (at += pids.length));
    const sum = (of: (use: (typeof uses)[number]) => number): number => uses.reduce((total, use) => total + of(use), 0);
    return {
      name,
      cpuSeconds: sum((use) => use.cpuSeconds),
      startMb: sum((use) => use.startMb),
      peakMb: sum((use) => use.peakMb),
    };
  });
}
