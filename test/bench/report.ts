import { type Figure, failures, type Run } from "./figures.ts";
import type { Scenario } from "./scenarios.ts";
import { median, roundedText, spread } from "./statistics.ts";

/** Tables in Markdown: medians with their spread, and comparisons taken within a round, since only those hold on a shared machine. */

const YARDSTICKS = ["nginx", "node-pipe"];
const NO_GATEWAY = "direct";

export function reportText(scenarios: readonly Scenario[], runs: readonly Run[]): string {
  return scenarios
    .map((scenario) => {
      const own = runs.filter((run) => run.scenario === scenario.name);
      return own.length > 0 ? `### ${scenario.name}\n\n${scenario.about}\n\n${table(scenario.figures, own)}\n` : "";
    })
    .filter((part) => part !== "")
    .join("\n");
}

interface Column {
  readonly title: string;
  cell(runs: readonly Run[]): string;
}

function table(figures: readonly Figure[], runs: readonly Run[]): string {
  const targets = [...new Set(runs.map(({ target }) => target))];
  const columns = [...figures.flatMap((figure) => columnsOf(figure, runs)), ...TRUST];
  const rows = targets.map((target) => {
    const own = runs.filter((run) => run.target === target);
    return [target, ...columns.map((column) => column.cell(own))];
  });
  const head = ["target", ...columns.map(({ title }) => title)];
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

const TRUST: readonly Column[] = [
  { title: "failures", cell: (runs) => String(runs.reduce((sum, run) => sum + failures(run), 0)) },
  { title: "disturbed", cell: (runs) => `${runs.filter(({ disturbed }) => disturbed).length} of ${runs.length}` },
];

function columnsOf(figure: Figure, all: readonly Run[]): Column[] {
  const own: Column = { title: figure.title, cell: (runs) => spread(runs.map((run) => figure.of(run))) };
  return [own, ...partColumns(figure, all), ...comparisons(figure, all)];
}

/** The same figure for a target's other programs. */
function partColumns(figure: Figure, all: readonly Run[]): Column[] {
  const others = new Set(all.flatMap(({ parts }) => parts.slice(1).map(({ name }) => name)));
  return Array.from(figure.ofPart ? others : [], (name) => ({
    title: `${name}: ${figure.title}`,
    cell: (runs: readonly Run[]) =>
      spread(
        runs.map((run) => {
          const part = run.parts.find((candidate) => candidate.name === name);
          return part ? (figure.ofPart?.(run, part) ?? null) : null;
        }),
      ),
  }));
}

function comparisons(figure: Figure, all: readonly Run[]): Column[] {
  const bases = figure.compare === "ratio" ? YARDSTICKS : figure.compare === "added" ? [NO_GATEWAY] : [];
  return bases
    .filter((base) => all.some(({ target }) => target === base))
    .map((base) => ({
      title: figure.compare === "ratio" ? `÷ ${base}` : "added",
      cell: (runs) => {
        const value = median(runs.map((run) => compared(figure, run, all.find(sameRound(run, base)))));
        if (value === null || runs[0]?.target === base) return "";
        return figure.compare === "added" && value >= 0 ? `+${roundedText(value)}` : roundedText(value);
      },
    }));
}

const sameRound =
  (run: Run, target: string) =>
  (other: Run): boolean =>
    other.target === target && other.round === run.round;

function compared(figure: Figure, run: Run, base: Run | undefined): number | null {
  const [value, yardstick] = [figure.of(run), base ? figure.of(base) : null];
  if (value === null || yardstick === null) return null;
  if (figure.compare === "added") return value - yardstick;
  return yardstick > 0 ? value / yardstick : null;
}
