import type { LoadResult } from "./load.ts";

/** One run of one scenario against one target. */
export interface Run {
  readonly scenario: string;
  readonly target: string;
  readonly round: number;
  readonly result: LoadResult;
  /** One for each program of the target, the gateway itself first. */
  readonly parts: readonly PartUse[];
  /** CPU in cores that processes outside the bench used meanwhile. */
  readonly foreign: number;
  readonly disturbed: boolean;
}

export interface PartUse {
  readonly name: string;
  readonly cpuSeconds: number;
  readonly startMb: number;
  readonly peakMb: number;
}

/** A number read off a run. */
export interface Figure {
  readonly title: string;
  /** @returns null where the run does not tell it. */
  of(run: Run): number | null;
  /** The same for another program of the target. */
  ofPart?(run: Run, part: PartUse): number | null;
  /** How targets are compared: by division, or by what is added to no gateway at all. */
  readonly compare: "ratio" | "added" | null;
}

const perRequest = (run: Run, part: PartUse | undefined): number | null =>
  part && run.result.ok > 0 ? (part.cpuSeconds * 1e6) / run.result.ok : null;
const perChunk = (run: Run, part: PartUse | undefined): number | null =>
  part && run.result.chunks > 0 ? (part.cpuSeconds * 1e6) / run.result.chunks : null;
const milliseconds = (us: number): number => us / 1000;

export const FIGURES = {
  requests: { title: "requests/s", of: ({ result }) => result.ok / result.seconds, compare: "ratio" },
  requestCpu: {
    title: "CPU µs/request",
    of: (run) => perRequest(run, run.parts[0]),
    ofPart: perRequest,
    compare: "ratio",
  },
  chunks: { title: "chunks/s", of: ({ result }) => result.chunks / result.seconds, compare: null },
  chunkCpu: {
    title: "CPU µs/chunk",
    of: (run) => perChunk(run, run.parts[0]),
    ofPart: perChunk,
    compare: "ratio",
  },
  p50: { title: "p50 ms", of: ({ result }) => milliseconds(result.latency.p50), compare: "added" },
  p99: { title: "p99 ms", of: ({ result }) => milliseconds(result.latency.p99), compare: "added" },
  first50: { title: "first token p50 ms", of: ({ result }) => milliseconds(result.first.p50), compare: "added" },
  first99: { title: "first token p99 ms", of: ({ result }) => milliseconds(result.first.p99), compare: "added" },
  hop50: { title: "chunk p50 ms", of: ({ result }) => milliseconds(result.hop.p50), compare: "added" },
  hop99: { title: "chunk p99 ms", of: ({ result }) => milliseconds(result.hop.p99), compare: "added" },
  idleMb: { title: "idle MB", of: ({ parts }) => parts[0]?.startMb ?? null, compare: null },
  grownMb: {
    title: "peak above idle MB",
    of: ({ parts: [gateway] }) => (gateway ? gateway.peakMb - gateway.startMb : null),
    ofPart: (_run, part) => part.peakMb - part.startMb,
    compare: "ratio",
  },
} satisfies Record<string, Figure>;

/** Requests and streams that did not go as they should. */
export function failures({ result }: Run): number {
  return result.refused + result.broken + result.cut + result.late;
}
