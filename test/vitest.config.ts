import { availableParallelism } from "node:os";
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";

const root = new URL("..", import.meta.url).pathname;
// Tests read the sources, so that no build has to come first.
const shared = { resolve: { conditions: ["fairlead-source"] }, ssr: { resolve: { conditions: ["fairlead-source"] } } };

/** How long a test waits for a condition where it says nothing else: a machine may have more to do than cores for it. */
const patienceMs = 20_000;
const patient = {
  setupFiles: ["test/support/patience.ts", "test/support/generated-input.ts"],
  provide: { patienceMs },
  expect: { poll: { timeout: patienceMs } },
};

/** Faults on real parts. Each file has a stage of its own, and waits for conditions rather than for time. */
const drills = (name: string, include: string, everyDrill = false): TestProjectInlineConfiguration => ({
  ...shared,
  test: {
    ...patient,
    name,
    root,
    include: [include],
    provide: { ...patient.provide, everyDrill },
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});

/** A bare machine installs everything anew. */
const tryDocs = (name: string, include: string): TestProjectInlineConfiguration => ({
  ...shared,
  test: { ...patient, name, root, include: [include], fileParallelism: false, testTimeout: 1_800_000 },
});

export default defineConfig({
  root,
  ...shared,
  test: {
    projects: [
      {
        ...shared,
        test: {
          ...patient,
          name: "unit",
          root,
          include: [
            "packages/*/src/**/*.test.ts",
            "test/fakes/*/src/*.test.ts",
            "test/architecture.test.ts",
            "test/regular-expressions.test.ts",
            "test/docs.test.ts",
            "test/language.test.ts",
            "test/names.test.ts",
            "test/units.test.ts",
            "test/try-docs/blocks.test.ts",
          ],
          isolate: false,
          // Many tests wait for sockets, processes and containers; the default leaves one core unused.
          maxWorkers: Math.max(2, availableParallelism()),
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        ...shared,
        test: {
          ...patient,
          name: "system",
          root,
          include: ["test/system/**/*.test.ts", "test/access-matrix/**/*.test.ts"],
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 300_000,
        },
      },
      drills("drills", "test/drills/*.test.ts"),
      drills("every-drill", "test/drills/*.test.ts", true),
      drills("attack", "test/attack/*.test.ts"),
      drills("long-attack", "test/attack/*.test.ts", true),
      drills("systemd", "test/systemd/*.test.ts"),
      drills("long-systemd", "test/systemd/long/*.test.ts"),
      tryDocs("try-docs", "test/try-docs/readme.test.ts"),
      tryDocs("long-try-docs", "test/try-docs/long/*.test.ts"),
      {
        ...shared,
        test: {
          ...patient,
          name: "clients",
          root,
          include: ["test/clients/*.test.ts"],
          setupFiles: [...patient.setupFiles, "test/clients/no-internet.ts"],
          env: { OPENAI_AGENTS_DISABLE_TRACING: "1" },
          fileParallelism: false,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
