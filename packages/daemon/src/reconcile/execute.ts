import type { ContainerRuntime, Owner } from "../runtime/container-runtime.ts";
import type { Step } from "./steps.ts";

export interface ExecuteContext {
  readonly runtime: ContainerRuntime;
  readonly owner: Owner;
  readonly onProgress: (percent: number) => void;
  readonly signal: AbortSignal;
}

type Executors = {
  readonly [T in Step["type"]]: (step: Extract<Step, { type: T }>, context: ExecuteContext) => Promise<void>;
};

const PULL_INACTIVITY_MS = 120_000;
const STOP_GRACE_SECONDS = 10;

/** One attempt each, and no choices. */
const EXECUTORS: Executors = {
  pull: (step, { runtime, onProgress, signal }) =>
    runtime.pull(step.image, { onProgress, inactivityMs: PULL_INACTIVITY_MS, signal }),
  create: async ({ name, spec, projectId, generation }, { runtime, owner }) => {
    await runtime.create({ name, spec, projectId, generation, owner });
  },
  start: (step, { runtime }) => runtime.start(step.containerId),
  stop: (step, { runtime }) => runtime.stop(step.containerId, STOP_GRACE_SECONDS),
  remove: (step, { runtime }) => runtime.remove(step.containerId),
};

/** @throws RuntimeError as the engine gave it. */
export function execute(step: Step, context: ExecuteContext): Promise<void> {
  const run = EXECUTORS[step.type] as (step: Step, context: ExecuteContext) => Promise<void>;
  return run(step, context);
}
