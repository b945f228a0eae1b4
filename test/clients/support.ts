import { existsSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TwoDialects } from "../support/two-dialects.ts";
import { waitFor } from "../support/wait-for.ts";

/** What the tests of outside clients share. Their packages are loaded inside the suites: without them every suite is skipped aloud. */

const INSTALLED = existsSync(new URL("node_modules/.package-lock.json", import.meta.url));
const WHY_NOT = "the outside clients are not installed: `npm ci --ignore-scripts` in test/clients, 650 MB";

/** A suite of one client. @param suite may load the client's packages. */
export function describeClient(name: string, suite: () => Promise<void> | void): void {
  if (INSTALLED) describe(name, suite);
  else test(name, ({ skip }) => skip(WHY_NOT));
}

/** An inference host before scripted engines of both dialects, for the suite around it. */
export function useStage(): TwoDialects {
  const stage = new TwoDialects();
  beforeAll(() => stage.start());
  afterAll(() => stage.stop());
  return stage;
}

/** The engine was told that its caller left, since `before`. */
export async function expectLeft(stage: TwoDialects, before: number): Promise<void> {
  await waitFor("the engine to be told", 10_000, () => Promise.resolve(stage.upstream.left > before));
  await waitFor("the call to be over", 10_000, () => Promise.resolve(stage.plane.host.load.callsInFlight === 0));
}

/** What an engine got last. */
export function lastAsked(stage: TwoDialects): {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
} {
  const last = stage.upstream.asked.at(-1);
  expect(last).toBeDefined();
  return last ?? { path: "", body: {} };
}

export const WEATHER = {
  name: "get_weather",
  description: "The weather in a city.",
  parameters: {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  },
} as const;
export const ASK_WEATHER = "What is the weather in Paris?";
export const ASK_TWICE = "What is the weather in Paris and in Tokyo?";
