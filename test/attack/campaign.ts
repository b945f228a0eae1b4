import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { AttackerReport } from "./attacker-program.ts";
import { collectGarbage } from "./collect-garbage.ts";
import { AttackStage, SHUTDOWN_SECONDS } from "./stage.ts";
import { type Baseline, baselineOf, figuresOf, findingsOf, isAtRest, type Round } from "./verdict.ts";
import { type Sample, Watch } from "./watch.ts";

const BASELINE_SAMPLES = 12;
const LEAST_SAMPLES = 3;
/** How long a server may take to have nothing left of a round. */
const REST_MS = 30_000;
const LOOK_MS = 200;
const DISOBEYED = `the server did not end within ${SHUTDOWN_SECONDS} s (shutdownSeconds) + 5 s of SIGTERM`;

interface Running {
  readonly stage: AttackStage;
  readonly watch: Watch;
  readonly baseline: Baseline;
}

/** Rounds of attacks on one server; after a finding on a new one, since nothing can be concluded from a damaged one. */
export class Campaign {
  readonly #report: string | undefined;
  #running: Running | null = null;
  #rounds = 0;

  /** @param report a file that each round's figures are added to, as a line of JSON. */
  constructor(report?: string) {
    this.#report = report;
  }

  /** @returns what must not be; empty where all is well. */
  async round(attack: string, moves: readonly object[]): Promise<readonly string[]> {
    this.#running ??= await start();
    const findings = await this.#attack(this.#running, { attack, moves }).catch((error: unknown) => [String(error)]);
    if (findings.length > 0) findings.push(...(await this.end()));
    return findings;
  }

  /** @returns what was wrong with the server's end. */
  async end(): Promise<readonly string[]> {
    if (this.#running === null) return [];
    const { stage, watch } = this.#running;
    this.#running = null;
    const isObeyed = await stage.stop();
    await watch.end();
    return isObeyed ? [] : [DISOBEYED];
  }

  async #attack(
    { stage, watch, baseline }: Running,
    { attack, moves }: { attack: string; moves: readonly object[] },
  ): Promise<string[]> {
    this.#rounds += 1;
    const round = this.#rounds;
    const from = { samples: watch.samples.length - 1, daemon: watch.daemon.length, unanswered: watch.unanswered };
    const honestBefore = stage.honest.last;
    const isOver = stage.attacker.hear((report) => report.round === round);
    stage.attacker.send({ round, attack, moves });
    const report = await Promise.race([isOver, this.#untilStuck(watch)]);
    await watch.more(LEAST_SAMPLES);
    const isDaemonHeard = await watch.daemonReports(2);
    if (!stage.server.running) return [`the server has ended: ${stage.server.log.slice(-2000)}`];
    if (!stage.honest.running || !stage.attacker.running) return ["the honest client or the attacker has ended"];
    const atRest = await untilAtRest(watch, { baseline, inspectorPort: stage.inspectorPort });
    const honest = stage.honest.last;
    const honestInAll = operations(honest?.succeeded);
    const seen: Round = {
      samples: watch.samples.slice(from.samples),
      atRest,
      daemon: watch.daemon.slice(from.daemon),
      isDaemonHeard,
      unanswered: watch.unanswered - from.unanswered,
      eventsByNode: watch.eventsByNode(),
      honestFailures: (honest?.failures ?? []).slice(honestBefore?.failures.length),
      honestOperations: honestInAll - operations(honestBefore?.succeeded),
      honestInAll,
      sent: report?.sent ?? null,
      seenByAttacker: report?.findings ?? [],
    };
    const findings = findingsOf(seen, baseline);
    const asked = findings.length > 0 ? moves : moves.length;
    this.#record({ round, attack, moves: asked, ...figuresOf(seen, baseline), findings });
    return findings;
  }

  #record(line: object): void {
    if (this.#report !== undefined) appendFileSync(this.#report, `${JSON.stringify(line)}\n`);
  }

  /** Resolves with null when the server says nothing any more: what else there is to learn would only take long. */
  async #untilStuck(watch: Watch): Promise<AttackerReport | null> {
    const before = watch.unanswered;
    while (watch.unanswered === before && this.#running !== null) await sleep(LOOK_MS);
    return null;
  }
}

async function start(): Promise<Running> {
  const stage = await AttackStage.start();
  const watch = new Watch(stage);
  await watch.more(BASELINE_SAMPLES);
  // The first sample has what was spent since the start.
  const baseline = baselineOf(watch.samples.slice(2), watch.daemon.slice(2));
  return { stage, watch, baseline };
}

async function untilAtRest(
  watch: Watch,
  { baseline, inspectorPort }: { readonly baseline: Baseline; readonly inspectorPort: number },
): Promise<Sample> {
  // Garbage lies for long in a server that nobody presses: it is no leak.
  if (!isAtRest(watch.newest, baseline)) {
    await collectGarbage(inspectorPort).catch(() => undefined);
    await watch.more(1);
  }
  const deadline = performance.now() + REST_MS;
  const stuck = watch.unanswered;
  while (!isAtRest(watch.newest, baseline) && performance.now() < deadline && watch.unanswered === stuck) {
    await sleep(LOOK_MS);
  }
  return watch.newest;
}

const operations = (succeeded: Readonly<Record<string, number>> = {}): number =>
  Object.values(succeeded).reduce((total, count) => total + count, 0);
