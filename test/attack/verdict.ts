import type { DaemonReport } from "./daemon-program.ts";
import type { Sample } from "./watch.ts";

/** What an attack may cost at most: everything is measured against the same run before its first attack. */

export interface Baseline {
  readonly lagMs: number;
  readonly rssBytes: number;
  readonly heapBytes: number;
  readonly files: number;
  readonly timers: number;
  readonly storeBytes: number;
  readonly daemonLagMs: number;
  readonly daemonRssBytes: number;
  readonly daemonHandles: number;
}

export interface Round {
  readonly samples: readonly Sample[];
  /** Taken when all was quiet, or did not become so in time. */
  readonly atRest: Sample;
  readonly daemon: readonly DaemonReport[];
  readonly isDaemonHeard: boolean;
  readonly unanswered: number;
  /** Since the server's start. */
  readonly eventsByNode: readonly { readonly node: string; readonly events: number }[];
  readonly honestFailures: readonly string[];
  readonly honestOperations: number;
  /** Honest operations since the server's start. */
  readonly honestInAll: number;
  /** Messages of the attacker; null where the round did not come to its end. */
  readonly sent: number | null;
  readonly seenByAttacker: readonly string[];
}

const MB = 1_000_000;
/** A busy machine of two cores delays a quiet process by this much. */
const LEAST_LAG_MS = 250;
/** A baseline above it tells of the machine and not of the server. */
const MOST_BASELINE_LAG_MS = 100;
/** A single delay this many times over the limit is a finding; lesser ones are when they are a large share. */
const FAR_OVER = 4;
const BLOCKED_SHARE = 0.2;
const LEAST_BLOCKED = 3;
/** Below this share of processor time in a delay, the machine gave the process no turn. */
const OWN_WORK = 0.7;
/** Bodies in memory (`inference.maxBufferedBytes`) twice, with room for their copies. */
const MOST_PEAK_BYTES = 700 * MB;
const MOST_HEAP_AT_REST_BYTES = 64 * MB;
/** Freed memory of large bodies is not all given back to the system. */
const MOST_RSS_AT_REST_BYTES = 400 * MB;
const MOST_DAEMON_RSS_BYTES = 200 * MB;
const MOST_HANDLES = 40;
/** 40 for each of four nodes that report whatever they like. */
const MOST_STORE_BYTES = 160 * MB;
const STORE_BYTES_PER_OPERATION = 16_384;
const MOST_EVENTS_OF_NODE = 10_500;
const STATEMENTS_PER_MESSAGE = 30;
const MOST_STATEMENTS = 1000;
/** At the level `warn`. */
const MOST_LOG_BYTES = 10 * MB;
const LOG_BYTES_PER_MESSAGE = 1024;

/** @param samples while honest clients alone were there. */
export function baselineOf(samples: readonly Sample[], daemon: readonly DaemonReport[]): Baseline {
  const last = samples.at(-1);
  const lastOfDaemon = daemon.at(-1);
  if (last === undefined || lastOfDaemon === undefined) throw new Error("there is nothing to compare with");
  return {
    lagMs: Math.min(MOST_BASELINE_LAG_MS, Math.max(...samples.map(({ lagMs }) => lagMs))),
    rssBytes: last.rssBytes,
    heapBytes: last.heapBytes,
    files: Math.max(...samples.map(({ files }) => files)),
    timers: Math.max(...samples.map(({ timers }) => timers)),
    storeBytes: last.storeBytes,
    daemonLagMs: Math.min(MOST_BASELINE_LAG_MS, Math.max(...daemon.map(({ lagMs }) => lagMs))),
    daemonRssBytes: lastOfDaemon.rssBytes,
    daemonHandles: Math.max(...daemon.map(({ handles, timers }) => handles + timers)),
  };
}

/** Whether nothing of an attack is left open. */
export function isAtRest({ files, timers, heapBytes, rssBytes }: Sample, before: Baseline): boolean {
  const isFree = files <= before.files + MOST_HANDLES && timers <= before.timers + MOST_HANDLES;
  const isSmall = rssBytes <= before.rssBytes + MOST_RSS_AT_REST_BYTES;
  return isFree && isSmall && heapBytes <= before.heapBytes + MOST_HEAP_AT_REST_BYTES;
}

/** @returns what must not be, each in a line. */
export function findingsOf(round: Round, before: Baseline): string[] {
  const { samples, honestFailures, unanswered, seenByAttacker } = round;
  const failed = honestFailures.map((why) => `an honest client failed: ${why}`);
  return [
    ...failed.slice(0, 5),
    ...(failed.length > 5 ? [`${failed.length - 5} more honest failures`] : []),
    ...(unanswered > 0 ? ["the server did not tell its figures"] : []),
    ...(round.isDaemonHeard ? [] : ["the daemon did not tell its figures, or has lost its connections"]),
    ...seenByAttacker,
    ...delays("the server's", { lags: samples, baselineMs: before.lagMs }),
    ...delays("the daemon's", { lags: round.daemon, baselineMs: before.daemonLagMs }),
    ...memory(round, before),
    ...store(round, before),
    ...work(round),
  ];
}

/** For reports of a run: what the round came to, in milliseconds and in megabytes above the baseline. */
export function figuresOf({ samples, atRest, daemon, sent, honestOperations }: Round, before: Baseline): object {
  const most = (figures: readonly number[]): number => Math.round(Math.max(0, ...figures));
  const grown = (bytes: number, from: number): number => Math.round((bytes - from) / MB);
  return {
    sent,
    honestOperations,
    lagMs: most(samples.map(({ lagMs }) => lagMs)),
    baselineLagMs: Math.round(before.lagMs),
    daemonLagMs: most(daemon.map(({ lagMs }) => lagMs)),
    peakMb: grown(most(samples.map(({ rssBytes }) => rssBytes)), before.rssBytes),
    rssAfterwardsMb: grown(atRest.rssBytes, before.rssBytes),
    heapAfterwardsMb: grown(atRest.heapBytes, before.heapBytes),
    filesAfterwards: atRest.files - before.files,
    timersAfterwards: atRest.timers - before.timers,
    storeMb: grown(atRest.storeBytes, before.storeBytes),
    logMb: grown(samples.at(-1)?.logBytes ?? 0, samples[0]?.logBytes ?? 0),
    statements: (samples.at(-1)?.statements ?? 0) - (samples[0]?.statements ?? 0),
  };
}

interface Lag {
  readonly lagMs: number;
  readonly cpuMs: number;
  readonly waitMs: number;
}

/**
 * A delay counts as far as the process itself worked through it: not the time that its thread waited for a turn, which is that of its
 * sample and the one before.
 */
function delays(whose: string, { lags, baselineMs }: { lags: readonly Lag[]; baselineMs: number }): string[] {
  const limit = Math.max(LEAST_LAG_MS, 5 * baselineMs);
  const own = lags.flatMap(({ lagMs, cpuMs, waitMs }, n) => {
    const before = lags[n - 1];
    const ownMs = lagMs - waitMs - (before?.waitMs ?? 0);
    return ownMs > limit && cpuMs + (before?.cpuMs ?? 0) >= OWN_WORK * ownMs ? [ownMs] : [];
  });
  const worst = Math.max(0, ...own);
  const isMuch = own.length >= LEAST_BLOCKED && own.length > BLOCKED_SHARE * lags.length;
  if (worst <= FAR_OVER * limit && !isMuch) return [];
  const share = `${own.length} of ${lags.length} samples over ${Math.round(limit)} ms`;
  return [`${whose} event loop was blocked for ${Math.round(worst)} ms (${share})`];
}

function memory({ samples, atRest, daemon }: Round, before: Baseline): string[] {
  const peak = Math.max(0, ...samples.map(({ rssBytes }) => rssBytes));
  const daemonPeak = Math.max(0, ...daemon.map(({ rssBytes }) => rssBytes));
  const last = daemon.at(-1);
  const handles = last === undefined ? 0 : last.handles + last.timers;
  return [
    ...over("the server's memory at its peak", peak - before.rssBytes, MOST_PEAK_BYTES),
    ...over("the server's memory afterwards", atRest.rssBytes - before.rssBytes, MOST_RSS_AT_REST_BYTES),
    ...over("the server's heap afterwards", atRest.heapBytes - before.heapBytes, MOST_HEAP_AT_REST_BYTES),
    ...over("the server's open files afterwards", atRest.files - before.files, MOST_HANDLES),
    ...over("the server's timers afterwards", atRest.timers - before.timers, MOST_HANDLES),
    ...over("the daemon's memory at its peak", daemonPeak - before.daemonRssBytes, MOST_DAEMON_RSS_BYTES),
    ...over("the daemon's handles afterwards", handles - before.daemonHandles, MOST_HANDLES),
  ];
}

function store({ atRest, eventsByNode, honestInAll }: Round, before: Baseline): string[] {
  const most = MOST_STORE_BYTES + honestInAll * STORE_BYTES_PER_OPERATION;
  const events = Math.max(0, ...eventsByNode.map((each) => each.events));
  return [
    ...over("the store", atRest.storeBytes - before.storeBytes, most),
    ...(events > MOST_EVENTS_OF_NODE ? [`${events} events of one node are stored`] : []),
  ];
}

function work({ samples, sent, honestOperations }: Round): string[] {
  const logged = (samples.at(-1)?.logBytes ?? 0) - (samples[0]?.logBytes ?? 0);
  const done = (samples.at(-1)?.statements ?? 0) - (samples[0]?.statements ?? 0);
  if (sent === null) return [];
  const most = MOST_STATEMENTS + STATEMENTS_PER_MESSAGE * (sent + honestOperations);
  return [
    ...over("the log", logged, MOST_LOG_BYTES + sent * LOG_BYTES_PER_MESSAGE),
    ...(done > most ? [`${done} statements for ${sent} messages and ${honestOperations} honest operations`] : []),
  ];
}

function over(what: string, grew: number, most: number): string[] {
  const unit = most >= MB ? ` MB` : "";
  const shown = (figure: number): string => `${Math.round(unit === "" ? figure : figure / MB)}${unit}`;
  return grew > most ? [`${what} grew by ${shown(grew)} (limit ${shown(most)})`] : [];
}
