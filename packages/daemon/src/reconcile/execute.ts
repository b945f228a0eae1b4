import type { DaemonLog } from "../process/log.ts";
import type { ContainerRuntime, Owner, PullProgress, RegistryAuth } from "../runtime/container-runtime.ts";
import { ownInit } from "../runtime/own-init.ts";
import type { WorkloadSecrets } from "../secrets/workload-secrets.ts";
import type { Step } from "./plan/steps.ts";

/** Dependencies of a pull. */
export interface PullPorts {
  readonly registryAuth: RegistryAuth;
  /** @throws RuntimeError `no-room` if the pending bytes would leave too little free space. */
  readonly requireRoom: (pendingBytes: number) => Promise<void>;
  /** Called after a successful pull. */
  readonly onPulled: (image: string, workloadId: string) => void;
}

/** Prepares the network of a workload before its container starts. */
export interface NetworkRules {
  /** @throws RuntimeError if the rules cannot be installed. */
  ready(): Promise<void>;
  /** Why a workload cannot reach the platform, or null. */
  noWay(workloadId: string): string | null;
}

export interface ExecuteContext {
  readonly runtime: ContainerRuntime;
  readonly owner: Owner;
  readonly pulls: PullPorts;
  readonly secrets: WorkloadSecrets;
  readonly networkRules: NetworkRules;
  readonly log: DaemonLog;
  readonly onProgress: (percent: number) => void;
  readonly signal: AbortSignal;
}

type Executors = {
  readonly [T in Step["type"]]: (step: Extract<Step, { type: T }>, context: ExecuteContext) => Promise<void>;
};

const PULL_INACTIVITY_MS = 120_000;
const STOP_GRACE_SECONDS = 10;

/** Executes a step once. */
const EXECUTORS: Executors = {
  pull,
  "add-network": ({ workloadId, network, internet }, { runtime, owner }) =>
    runtime.addNetwork({ name: network, owner, workloadId, internet }),
  "remove-network": ({ networkId }, { runtime }) => runtime.removeNetwork(networkId),
  create: async ({ name, spec, projectId, generation }, { runtime, owner, secrets, log }) => {
    const given = await secrets.prepare(name, spec);
    const start = (await runtime.image(spec.image))?.start;
    const program = start === undefined ? null : ownInit(spec, start);
    if (program !== null && spec.init === undefined) {
      log.info({ container: name, program }, "the image has its own init process; not adding Docker's");
    }
    const init = spec.init ?? program === null;
    await runtime.create({ name, spec: { ...spec, init }, projectId, generation, owner, secrets: given });
  },
  start: async ({ containerId, name }, { runtime, secrets, networkRules }) => {
    await networkRules.ready();
    await secrets.place({ id: containerId, name });
    await runtime.start(containerId);
  },
  stop: (step, { runtime }) => runtime.stop(step.containerId, STOP_GRACE_SECONDS),
  remove: async ({ containerId, name }, { runtime, secrets }) => {
    await runtime.remove(containerId);
    await secrets.discard(name);
  },
};

/** The size of an image is known only during the pull, so the floor is checked on every progress event (amazon-ecs-agent#632). */
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

/** @throws RuntimeError from the container engine. */
export function execute(step: Step, context: ExecuteContext): Promise<void> {
  const run = EXECUTORS[step.type] as (step: Step, context: ExecuteContext) => Promise<void>;
  return run(step, context);
}
