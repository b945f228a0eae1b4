import { parseArgs } from "node:util";
import { SCENARIOS, type Scenario } from "./scenarios.ts";
import { TARGETS, type Target } from "./targets.ts";

/** What one run of the bench was asked for. */
export interface Options {
  readonly targets: readonly Target[];
  readonly scenarios: readonly Scenario[];
  readonly rounds: number;
  /** Measured time of one run, and the time before it. */
  readonly seconds: number;
  readonly warmSeconds: number;
  readonly pinned: boolean;
  /** CPU of processes outside the bench, in cores, above which a run counts as disturbed. */
  readonly maxForeign: number;
  /** How often a disturbed run is tried; the least disturbed one is kept. */
  readonly tries: number;
  readonly json: boolean;
  /** Folder for CPU profiles of Fairlead's two programs. */
  readonly profileDir: string | undefined;
}

export class UsageError extends Error {}

export function helpText(): string {
  const list = (named: ReadonlyMap<string, { readonly about: string }>): string =>
    Array.from(named, ([name, { about }]) => `  ${name.padEnd(14)} ${about}`).join("\n");
  return `Usage: node test/bench/main.ts [options]

Measures Fairlead side by side with plain proxies, all in front of the same fast mock upstream, on the loopback.
Needs cc, two cores, and nginx for its target. docs/performance.md tells how to read the figures.

  --target LIST      which to measure, in turn, round by round (default: all)
  --scenario LIST    what to measure (default: all)
  --rounds N         (default 3)
  --seconds N        measured time of one run (default 3)
  --warm N           seconds before it (default 1)
  --no-pin           let the kernel place everything; else mock, client and daemon share core 0, the target has core 1
  --foreign CORES    CPU of other processes above which a run is tried again (default 0.12)
  --tries N          how often (default 3)
  --profile DIR      write CPU profiles of Fairlead's two programs
  --json             print every run as JSON instead of the tables
  --help             this text

Targets
${list(TARGETS)}

Scenarios
${list(SCENARIOS)}
`;
}

/** @returns null where help was asked for. @throws UsageError */
export function readOptions(argv: readonly string[]): Options | null {
  const values = parse(argv);
  if (values.help) return null;
  return {
    targets: pick("target", TARGETS, values.target),
    scenarios: pick("scenario", SCENARIOS, values.scenario),
    rounds: number("rounds", values.rounds, 1),
    seconds: number("seconds", values.seconds, 1),
    warmSeconds: number("warm", values.warm, 0),
    pinned: !values["no-pin"],
    maxForeign: number("foreign", values.foreign, 0),
    tries: number("tries", values.tries, 1),
    json: values.json,
    profileDir: values.profile,
  };
}

function parse(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      options: {
        target: { type: "string" },
        scenario: { type: "string" },
        rounds: { type: "string", default: "3" },
        seconds: { type: "string", default: "3" },
        warm: { type: "string", default: "1" },
        foreign: { type: "string", default: "0.12" },
        tries: { type: "string", default: "3" },
        profile: { type: "string" },
        "no-pin": { type: "boolean", default: false },
        json: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function pick<T>(option: string, known: ReadonlyMap<string, T>, list: string | undefined): T[] {
  if (list === undefined) return [...known.values()];
  return list.split(",").map((name) => {
    const found = known.get(name);
    if (found === undefined) {
      throw new UsageError(`--${option} knows ${[...known.keys()].join(", ")}, not '${name}'.`);
    }
    return found;
  });
}

function number(option: string, text: string, least: number): number {
  const value = Number(text);
  if (text === "" || !Number.isFinite(value) || value < least) {
    throw new UsageError(`--${option} needs a number from ${least}, not '${text}'.`);
  }
  return value;
}
