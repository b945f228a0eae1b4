import { spawnSync } from "node:child_process";

/** All checks before a commit, one line per step. `--without-tests` skips the unit tests. */

const STEPS: readonly (readonly [name: string, command: string, ...args: string[]])[] = [
  ["types", "tsc", "-b"],
  ["lint", "oxlint", "--type-aware", "--deny-warnings"],
  ["format", "biome", "check", "--error-on-warnings"],
  ["unused code", "knip", "--no-config-hints"],
  ["unit tests", "vitest", "run", "--config", "test/vitest.config.ts", "--project", "unit"],
];

const root = new URL("..", import.meta.url).pathname;
const env = { ...process.env, NO_COLOR: "1" };

function passes([name, command, ...args]: (typeof STEPS)[number]): boolean {
  const started = performance.now();
  const { status, stdout, stderr } = spawnSync(`${root}scripts/lib/with-node`, [command, ...args], {
    cwd: root,
    env,
    encoding: "utf8",
  });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  process.stdout.write(`${status === 0 ? "ok    " : "FAILED"}  ${name.padEnd(12)} ${seconds.padStart(5)} s\n`);
  if (status !== 0) process.stdout.write(`${stdout ?? ""}${stderr ?? ""}\n`);
  return status === 0;
}

const steps = process.argv.includes("--without-tests") ? STEPS.slice(0, -1) : STEPS;
const failed = steps.filter((step) => !passes(step));
process.exitCode = failed.length > 0 ? 1 : 0;
