import { defineConfig } from "vitest/config";

const root = new URL("..", import.meta.url).pathname;
// Tests read the sources, so that no build has to come first.
const shared = { resolve: { conditions: ["fairlead-source"] }, ssr: { resolve: { conditions: ["fairlead-source"] } } };

export default defineConfig({
  root,
  ...shared,
  test: {
    projects: [
      {
        ...shared,
        test: {
          name: "unit",
          root,
          include: ["packages/*/src/**/*.test.ts", "test/architecture.test.ts", "test/docs.test.ts"],
          isolate: false,
        },
      },
      {
        ...shared,
        test: {
          name: "system",
          root,
          include: ["test/system/**/*.test.ts", "test/access-matrix/**/*.test.ts"],
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 300_000,
        },
      },
      {
        ...shared,
        test: {
          name: "clients",
          root,
          include: ["test/clients/*.test.ts"],
          setupFiles: ["test/clients/no-internet.ts"],
          env: { OPENAI_AGENTS_DISABLE_TRACING: "1" },
          fileParallelism: false,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
