import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { startVitest, type TestCase, type TestResult, type Vitest } from "vitest/node";

/**
 * Runs the checks and all suites, or one kind. `node scripts/test-suites.ts FILE [--drills|--systemd]`: writes the summary to
 * FILE for the last lines of scripts/test: skipped tests with their reasons, then `N passed, N failed`.
 */

interface Counts {
  passed: number;
  failed: number;
  readonly skipped: string[];
}

const SUITES = ["unit", "system", "drills", "attack", "systemd", "clients", "try-docs"];
/** All suites of a kind, including long ones. */
const ALL_OF: Readonly<Record<string, readonly string[]>> = {
  "--drills": ["every-drill", "long-attack", "long-try-docs"],
  "--systemd": ["systemd", "long-systemd"],
};

function count(counts: Counts, vitest: Vitest): void {
  for (const module of vitest.state.getTestModules()) {
    const tests = [...module.children.allTests()];
    // A file that fails to load has no tests, and a failing hook may leave tests without a result.
    if (module.state() === "failed" && !tests.some((test) => test.result().state === "failed")) counts.failed += 1;
    for (const test of tests) countTest(counts, test);
  }
  counts.failed += vitest.state.getUnhandledErrors().length;
}

function countTest(counts: Counts, test: TestCase): void {
  const result = test.result();
  if (result.state === "passed") counts.passed += 1;
  else if (result.state === "failed") counts.failed += 1;
  else counts.skipped.push(`skipped: ${test.fullName} (${reasonOf(result)})`);
}

/** Suites that skip themselves state the reason in their title. */
function reasonOf(result: TestResult): string {
  return result.state === "skipped" ? (result.note ?? "see its title") : "not reached";
}

function summary({ passed, failed, skipped }: Counts): string {
  const ending = skipped.length > 0 ? `, ${skipped.length} skipped` : "";
  return [...skipped, `${passed} passed, ${failed} failed${ending}`, ""].join("\n");
}

async function runSuite(project: string): Promise<Vitest> {
  const vitest = await startVitest("test", [], { config: "test/vitest.config.ts", project: [project], watch: false });
  await vitest.close();
  return vitest;
}

function countChecks(counts: Counts): void {
  const checks = spawnSync(process.execPath, ["scripts/check.ts", "--without-tests"], { stdio: "inherit" });
  if (checks.status === 0) counts.passed += 1;
  else counts.failed += 1;
}

const [, , file, only] = process.argv;
// Drills explore; test/support/seed.ts reads this.
if (only === "--drills") process.env["FAIRLEAD_TEST_SEED"] ??= "random";
const counts: Counts = { passed: 0, failed: 0, skipped: [] };
if (only === undefined) countChecks(counts);
for (const suite of only === undefined ? SUITES : (ALL_OF[only] ?? [])) count(counts, await runSuite(suite));

if (file !== undefined) writeFileSync(file, summary(counts));
process.exit(counts.failed > 0 ? 1 : 0);
