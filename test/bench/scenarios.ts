import { FIGURES, type Figure } from "./figures.ts";

export interface Scenario {
  readonly name: string;
  readonly about: string;
  /** Arguments of the load client. */
  readonly load: readonly string[];
  /** Each connection makes one request: the run ends by itself, within this many seconds. */
  readonly onceSeconds?: number;
  /** The target is started anew for each run: peak memory is read. */
  readonly fresh?: boolean;
  readonly figures: readonly Figure[];
}

const { requests, p50, p99, requestCpu, chunks, chunkCpu, first50, first99, hop50, hop99, idleMb, grownMb } = FIGURES;

const all: readonly Scenario[] = [
  {
    name: "json64",
    about: "64 connections, 0.36 KB in, 1.1 KB out, each the next request when the last one ended",
    load: ["-n", "64"],
    figures: [requests, requestCpu, p50, p99],
  },
  {
    name: "rate3000",
    about: "3,000 JSON requests/s on a fixed clock: cost at equal load (a gateway that waits less often costs less)",
    load: ["-n", "256", "-r", "3000"],
    figures: [requests, requestCpu, p50, p99],
  },
  {
    name: "rate200",
    about: "200 JSON requests/s on a fixed clock: latency without queueing",
    load: ["-n", "64", "-r", "200"],
    figures: [p50, p99],
  },
  {
    name: "paced",
    about: "200 streams, a chunk each 20 ms: 10,000 chunks/s, none in one packet with another",
    load: ["-S", "-n", "200", "-c", "100", "-d", "20", "-g", "1000"],
    figures: [chunks, chunkCpu, hop50, hop99],
  },
  {
    name: "open100",
    about: "100 new streams/s on a fixed clock, 20 chunks each: first-token time",
    load: ["-S", "-n", "200", "-r", "100", "-c", "20", "-d", "5"],
    figures: [first50, first99, hop50, hop99],
  },
  {
    name: "hold1000",
    about: "1,000 streams open at once, a chunk a second each: memory",
    load: ["-S", "-o", "-n", "1000", "-c", "8", "-d", "1000", "-g", "3000"],
    onceSeconds: 60,
    fresh: true,
    figures: [idleMb, grownMb, first50],
  },
  {
    name: "hold5000",
    about: "5,000 streams open at once, a chunk a second each: memory",
    load: ["-S", "-o", "-n", "5000", "-c", "25", "-d", "1000", "-g", "15000"],
    onceSeconds: 120,
    fresh: true,
    figures: [idleMb, grownMb, first50],
  },
  {
    name: "body8m",
    about: "bodies of 8 MB, 4 at once",
    load: ["-n", "4", "-B", "8000000"],
    fresh: true,
    figures: [requests, requestCpu, p99, idleMb, grownMb],
  },
];

export const SCENARIOS: ReadonlyMap<string, Scenario> = new Map(all.map((scenario) => [scenario.name, scenario]));
