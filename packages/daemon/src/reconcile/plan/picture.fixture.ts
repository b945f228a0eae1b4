import type { DesiredState, WorkloadSpec } from "@fairlead/protocol/workload";
import type { Container, ImageFacts, Network } from "../../runtime/container-runtime.ts";
import { containerName, networkName, ownershipLabels } from "../../runtime/ownership.ts";
import { aDesiredState, aSpec, OWNER } from "../../testing/builders.ts";
import type { HealthStatus } from "../health.ts";
import { type PlanInput, plan } from "./plan.ts";
import { NO_RUNS, type RunRecord } from "./run-record.ts";
import { describe } from "./steps.ts";

/** A small language for snapshots of a node. `v1` is the older spec of the workload, `v2` the desired one. */
export const NOW = 1_000_000;
export const image: ImageFacts = {
  id: "sha256:1",
  repoDigests: [],
  labels: {},
  tags: [],
  start: { entrypoint: [], command: [] },
};
export const hashOf = (version: string): string => version.padEnd(64, "0");
export const specOf = (version: string, update: WorkloadSpec["update"]): WorkloadSpec =>
  aSpec({ specHash: hashOf(version), update });
export const nameOf = (version: string): string => containerName(OWNER.nodeId, specOf(version, "stop-first"));

export const NETWORK = networkName(OWNER.nodeId, aSpec());
export const networkOf = (name: string, workloadId = aSpec().workloadId): Network => ({
  id: `id of ${name}`,
  name,
  workloadId,
  gateway: "198.19.0.1",
  subnet: "198.19.0.0/29",
});

export interface Piece {
  readonly is: string;
  readonly network?: string;
  readonly state?: Container["state"];
  readonly health?: HealthStatus["state"];
  readonly record?: Partial<RunRecord>;
  readonly busy?: number;
  readonly workloadId?: string;
}

export interface Picture {
  readonly networks?: readonly Network[];
  readonly update?: WorkloadSpec["update"];
  readonly pieces?: readonly Piece[];
  readonly imageAbsent?: boolean;
  readonly foreign?: boolean;
  readonly missing?: ReturnType<PlanInput["missingSecrets"]>;
  readonly record?: Partial<RunRecord>;
  readonly desired?: Partial<DesiredState>;
}

export function inputOf(picture: Picture): PlanInput {
  const update = picture.update ?? "stop-first";
  const desired = aDesiredState({ workloads: [specOf("v2", update)], ...picture.desired });
  const pieces = picture.pieces ?? [];
  const containers = pieces.map((piece, index): Container => {
    const spec = { ...specOf(piece.is, update), ...(piece.workloadId ? { workloadId: piece.workloadId } : {}) };
    return {
      id: piece.is,
      name: nameOf(piece.is),
      labels: ownershipLabels(OWNER, spec, index),
      state: piece.state ?? "running",
      image: spec.image,
      imageId: image.id,
      network: piece.network ?? NETWORK,
      hostPort: 1,
      startedAt: "2026-01-01T00:00:00.000Z",
      finishedAt: null,
      exitCode: 0,
      outOfMemory: false,
      error: "",
    };
  });
  const records = new Map(pieces.map((piece) => [nameOf(piece.is), { ...NO_RUNS, ...piece.record }]));
  if (picture.record) records.set(nameOf("v2"), { ...NO_RUNS, ...picture.record });
  return {
    desired,
    observed: {
      containers,
      networks: new Map((picture.networks ?? [networkOf(NETWORK)]).map((network) => [network.name, network])),
      foreign: new Map(picture.foreign ? [[nameOf("v2"), { ...(containers[0] as Container), labels: {} }]] : []),
      images: new Map([[aSpec().image, picture.imageAbsent ? null : image]]),
    },
    records,
    health: (container) => ({
      state: pieces.find((piece) => piece.is === container.id)?.health ?? "starting",
      detail: "",
      version: "",
      models: [],
    }),
    inFlight: (container) => pieces.find((piece) => piece.is === container.id)?.busy ?? 0,
    missingSecrets: () => picture.missing ?? [],
    now: NOW,
  };
}

export function planOf(picture: Picture): { steps: string[]; wait: number | null } {
  const { steps, wakeAt } = plan(inputOf(picture));
  const short = (text: string): string =>
    text.replaceAll(nameOf("v1"), "v1").replaceAll(nameOf("v2"), "v2").replaceAll(nameOf("v0"), "v0");
  return { steps: steps.map((step) => short(describe(step))), wait: wakeAt === null ? null : wakeAt - NOW };
}

export const READY = { health: "ready", record: { readySince: NOW - 600_000, everReady: true } } as const;
export const JUST_READY = { health: "ready", record: { readySince: NOW, everReady: true } } as const;
