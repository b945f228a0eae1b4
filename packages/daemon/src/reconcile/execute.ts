import type { ContainerRuntime, Owner, PullProgress, RegistryAuth } from "../runtime/container-runtime.ts";
import type { WorkloadSecrets } from "../secrets/workload-secrets.ts";
import type { Step } from "./steps.ts";

/** What a pull needs beside the container engine. */
export interface PullPorts {
  readonly registryAuth: RegistryAuth;
  /** @throws RuntimeError `no-room` where so many bytes more would leave too little free space. */
  readonly requireRoom: (pendingBytes: number) => Promise<void>;
  /** An image has come by a pull of ours. */
  readonly onPulled: (image: string, workloadId: string) => void;
}

export interface ExecuteContext {
  readonly runtime: ContainerRuntime;
  readonly owner: Owner;
  readonly pulls: PullPorts;
  readonly secrets: WorkloadSecrets;
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
  pull,
  create: async ({ name, spec, projectId, generation }, { runtime, owner, secrets }) => {
    const given = await secrets.prepare(name, spec);
    await runtime.create({ name, spec, projectId, generation, owner, secrets: given });
  },
  start: async ({ containerId, name }, { runtime, secrets }) => {
    await secrets.place({ id: containerId, name });
    await runtime.start(containerId);
  },
  stop: (step, { runtime }) => runtime.stop(step.containerId, STOP_GRACE_SECONDS),
  remove: async ({ containerId, name }, { runtime, secrets }) => {
    await runtime.remove(containerId);
    await secrets.discard(name);
  },
};

/** How large an image is shows only while it comes, so the floor is looked at again with every piece of news (amazon-ecs-agent#632). */
async function pull(step: Extract<Step, { type: "pull" }>, context: ExecuteContext): Promise<void> {
  const { runtime, pulls, onProgress, signal } = context;
  await pulls.requireRoom(0);
  const credentials = await pulls.registryAuth(step.spec);
  const noRoom = Promise.withResolvers<never>();
  const cancel = new AbortController();
  const news = ({ percent, pendingBytes }: PullProgress): void => {
    onProgress(percent);
    pulls.requireRoom(pendingBytes).catch((error: unknown) => {
      noRoom.reject(error);
      cancel.abort();
    });
  };
  const options = {
    credentials,
    onProgress: news,
    inactivityMs: PULL_INACTIVITY_MS,
    signal: AbortSignal.any([signal, cancel.signal]),
  };
  await Promise.race([runtime.pull(step.image, options), noRoom.promise]);
  pulls.onPulled(step.image, step.workloadId);
}

/** @throws RuntimeError as the engine gave it. */
export function execute(step: Step, context: ExecuteContext): Promise<void> {
  const run = EXECUTORS[step.type] as (step: Step, context: ExecuteContext) => Promise<void>;
  return run(step, context);
}
