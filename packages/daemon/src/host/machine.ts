import { join } from "node:path";
import { type Clock, rfc3339 } from "@fairlead/protocol/values/clock";
import type { DesiredState } from "@fairlead/protocol/workload";
import { ImageCleaner } from "../cleanup/image-cleaner.ts";
import { ImageMemory, pulledImagesSchema } from "../cleanup/image-memory.ts";
import { type DaemonLog, reasonOf } from "../process/log.ts";
import type { Timers } from "../process/timers.ts";
import type { PullPorts } from "../reconcile/execute.ts";
import type { LoopSnapshot } from "../reconcile/loop.ts";
import type { ContainerRuntime, RegistryAuth } from "../runtime/container-runtime.ts";
import { DurableRecord } from "../state/durable-record.ts";
import type { FileLayer } from "../state/files.ts";
import { ConditionBoard } from "./condition-board.ts";
import { dockerFinding } from "./condition-rules.ts";
import { DiskRoom, readDiskSpace } from "./disk.ts";
import type { DiskSpace } from "./disk-rules.ts";
import { readGpus } from "./gpus.ts";
import { MachineWatch } from "./machine-watch.ts";

export interface MachineDeps {
  readonly runtime: ContainerRuntime;
  readonly files: FileLayer;
  readonly stateDir: string;
  readonly registryAuth: RegistryAuth;
  readonly skewMs: () => number | null;
  /** The platform's time, Unix milliseconds. */
  readonly now: () => number;
  readonly desired: () => DesiredState | null;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: DaemonLog;
  readonly onEvent: (kind: string, workloadId: string | null, message: string) => void;
  /** Called when the conditions change. */
  readonly onConditions: () => void;
}

/** Services for the machine itself. */
export interface HostMachine {
  readonly board: ConditionBoard;
  readonly pulls: PullPorts;
  readonly observed: (snapshot: LoopSnapshot) => void;
  close(): Promise<void>;
}

/** Creates and starts disk checks, clean-up and conditions. */
export async function startMachine(deps: MachineDeps): Promise<HostMachine> {
  const { runtime, clock, timers, log, desired, onEvent } = deps;
  const readSpace = spaceReader(runtime);
  const record = new DurableRecord(deps.files, join(deps.stateDir, "pulled-images.json"), pulledImagesSchema);
  const memory = new ImageMemory({ record, clock, log });
  await memory.load();
  const cleaner = new ImageCleaner({ runtime, memory, readSpace, desired, clock, timers, log, onEvent });
  const room = new DiskRoom({
    readSpace,
    clock,
    onRefused: () => {
      cleaner.wake();
      watch.wake();
    },
  });
  const time = (): string => rfc3339(deps.now());
  const board = new ConditionBoard({ time, onEvent, onChange: deps.onConditions });
  const refusal = (): string | null => room.refusal;
  const watch = new MachineWatch({ ...deps, board, readSpace, refusal, readGpus });
  const running = [cleaner.run(), watch.run()];
  let generation: number | null = null;
  return {
    board,
    pulls: {
      registryAuth: deps.registryAuth,
      requireRoom: room.require,
      onPulled: pulledTaker({ ...deps, memory, room }),
    },
    observed: (snapshot) => {
      board.set("docker", dockerFinding(snapshot.away));
      if (snapshot.observed !== null) memory.used(snapshot.observed.containers, snapshot.desired);
      // The required GPUs may have changed.
      if (snapshot.desired.generation !== generation) watch.wake();
      generation = snapshot.desired.generation;
    },
    close: async () => {
      cleaner.close();
      watch.close();
      await Promise.all([...running, memory.close()]);
    },
  };
}

/** @returns the space on the container engine's disk; null if its folder is unknown. */
function spaceReader(runtime: Pick<ContainerRuntime, "version">): () => Promise<DiskSpace | null> {
  let folder: string | null = null;
  return async () => {
    try {
      folder ??= (await runtime.version()).rootFolder;
      return await readDiskSpace(folder);
    } catch {
      return null;
    }
  };
}

function pulledTaker(parts: {
  readonly runtime: Pick<ContainerRuntime, "image">;
  readonly memory: ImageMemory;
  readonly room: DiskRoom;
  readonly log: DaemonLog;
}): PullPorts["onPulled"] {
  const { runtime, memory, room, log } = parts;
  return (reference, workloadId) => {
    room.pulled();
    runtime.image(reference).then(
      (image) => image && memory.pulled({ id: image.id, reference, workloadId }),
      (error: unknown) => log.warn({ reason: reasonOf(error) }, "could not inspect a pulled image"),
    );
  };
}
