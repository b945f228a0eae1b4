import { statfs } from "node:fs/promises";
import type { Clock } from "@fairlead/protocol/values/clock";
import { z } from "zod";
import {
  type Machine,
  type MachinePlan,
  type MachineProvider,
  type MachineRequest,
  type MachineState,
  ProviderRefusal,
} from "../machine-provider.ts";
import { DockerEngine, DockerEngineError } from "./docker-engine.ts";
import {
  MACHINE_LABELS,
  type MachineSpec,
  machineContainer,
  machineFiles,
  REMOVE_WORKLOADS,
  secretsVolume,
} from "./docker-machine-spec.ts";

const TYPE = "debian-12";
const LOCATION = "local";

const madeVolume = z.object({ Mountpoint: z.string() });
const madeContainer = z.object({ Id: z.string() });
const madeExec = z.object({ Id: z.string() });
const endedExec = z.object({ ExitCode: z.number().nullable() });
const engineInfo = z.object({ NCPU: z.number(), MemTotal: z.number(), DockerRootDir: z.string() });
const listed = z.array(z.object({ Id: z.string() }));
const inspected = z.object({
  Id: z.string(),
  Name: z.string(),
  Created: z.iso.datetime(),
  State: z.object({ Status: z.string(), ExitCode: z.number(), Error: z.string() }),
  Config: z.object({ Labels: z.record(z.string(), z.string()) }),
});
type Inspected = z.infer<typeof inspected>;

export interface DockerMachinesParts {
  readonly socketPath: string;
  /** Created by scripts/build-machine-image. */
  readonly image: string;
  readonly installationId: string;
  readonly clock: Clock;
}

/**
 * Machines for trials: Debian containers with systemd on this machine's network and Docker engine. Anyone who can create one gets root here,
 * so it must be enabled by the operator.
 */
export class DockerMachines implements MachineProvider {
  readonly name = "docker";
  readonly needsToken = false;
  readonly maxUserDataBytes = 32 * 1024;
  readonly #engine: DockerEngine;
  readonly #parts: DockerMachinesParts;

  constructor(parts: DockerMachinesParts) {
    this.#parts = parts;
    this.#engine = new DockerEngine(parts.socketPath);
  }

  checkToken(): Promise<void> {
    return Promise.resolve();
  }

  plans(): Promise<readonly MachinePlan[]> {
    return asRefusal(async () => {
      const { NCPU, MemTotal, DockerRootDir } = await this.#engine.json({ method: "GET", path: "/info" }, engineInfo);
      const { blocks, bsize } = await statfs(DockerRootDir).catch(() => ({ blocks: 0, bsize: 0 }));
      const here = { name: LOCATION, available: true, monthlyPrice: null, hourlyPrice: null };
      const [memoryMb, diskGb] = [Math.floor(MemTotal / 2 ** 20), Math.floor((blocks * bsize) / 2 ** 30)];
      return [{ type: TYPE, cores: NCPU, memoryMb, diskGb, gpu: null, locations: [here] }];
    });
  }

  async create(_token: string, request: MachineRequest): Promise<Machine> {
    const { type, location, userData } = request;
    if (type !== TYPE) throw refusal("bad_input", `there is no machine type ${type}; the only one is ${TYPE}`);
    if (location !== LOCATION)
      throw refusal("bad_input", `there is no location ${location}; the only one is ${LOCATION}`);
    if (Buffer.byteLength(userData) > this.maxUserDataBytes) throw refusal("bad_input", "the user data is too long");
    return asRefusal(async () => {
      const id = await this.#make(request);
      await this.#engine.send({ method: "POST", path: `/containers/${id}/start` });
      return machineOf(await this.#inspect(id));
    });
  }

  async get(_token: string, machineId: string): Promise<Machine | null> {
    return asRefusal(async () => {
      const found = await unlessMissing(this.#inspect(machineId));
      // Containers of others are not machines.
      return found === null || !this.#isOurs(found) ? null : machineOf(found);
    });
  }

  async delete(_token: string, machineId: string): Promise<void> {
    await asRefusal(async () => {
      const found = await unlessMissing(this.#inspect(machineId));
      if (found === null || !this.#isOurs(found)) return;
      if (found.State.Status !== "created") await this.#removeWorkloads(found);
      const { Id, Name } = found;
      await unlessMissing(this.#engine.send({ method: "DELETE", path: `/containers/${Id}?force=true&v=true` }));
      const volume = volumeOf(Name.replace(/^\//, ""));
      await unlessMissing(this.#engine.send({ method: "DELETE", path: `/volumes/${volume}` }));
    });
  }

  findByLabel(_token: string, label: string | null): Promise<readonly Machine[]> {
    return asRefusal(async () => {
      const ours = `${MACHINE_LABELS.installation}=${this.#parts.installationId}`;
      const labels = label === null ? [ours] : [ours, `${MACHINE_LABELS.request}=${label}`];
      const filters = encodeURIComponent(JSON.stringify({ label: labels }));
      const path = `/containers/json?all=true&filters=${filters}`;
      const found = await this.#engine.json({ method: "GET", path }, listed);
      const machines = await Promise.all(found.map(({ Id }) => unlessMissing(this.#inspect(Id))));
      return machines.filter((machine) => machine !== null).map(machineOf);
    });
  }

  async #make(request: MachineRequest): Promise<string> {
    const { name, label, userData } = request;
    const { image, installationId, socketPath, clock } = this.#parts;
    const labels = { [MACHINE_LABELS.request]: label, [MACHINE_LABELS.installation]: installationId };
    const volume = volumeOf(name);
    const volumeSpec = secretsVolume({ labels, secrets: { volume, path: "" } });
    const call = { method: "POST", path: "/volumes/create", body: volumeSpec } as const;
    const { Mountpoint: path } = await this.#engine.json(call, madeVolume);
    const spec: MachineSpec = { name, image, labels, engineSocket: socketPath, secrets: { volume, path } };
    const body = machineContainer(spec);
    const create = { method: "POST", path: `/containers/create?name=${encodeURIComponent(name)}`, body } as const;
    const { Id } = await this.#engine.json(create, madeContainer).catch(async (error: unknown) => {
      // Docker keeps it while another machine of that name uses it.
      await this.#engine.send({ method: "DELETE", path: `/volumes/${volume}` }).catch(() => null);
      throw error;
    });
    const files = machineFiles(userData, path, clock.now() / 1000);
    await this.#engine.send({ method: "PUT", path: `/containers/${Id}/archive?path=/`, body: files });
    return Id;
  }

  /** The machine's workloads run next to it, not inside. */
  async #removeWorkloads({ Id }: Inspected): Promise<void> {
    await this.#engine.send({ method: "POST", path: `/containers/${Id}/start` });
    const body = { Cmd: ["sh", "-c", REMOVE_WORKLOADS], AttachStdout: true, AttachStderr: true };
    const exec = await this.#engine.json({ method: "POST", path: `/containers/${Id}/exec`, body }, madeExec);
    const start = { method: "POST", path: `/exec/${exec.Id}/start`, body: { Detach: false, Tty: true } } as const;
    const said = await this.#engine.send(start);
    const { ExitCode } = await this.#engine.json({ method: "GET", path: `/exec/${exec.Id}/json` }, endedExec);
    if (ExitCode !== 0) throw refusal("unavailable", `its containers could not be removed: ${said.toString().trim()}`);
  }

  #inspect(id: string): Promise<Inspected> {
    return this.#engine.json({ method: "GET", path: `/containers/${encodeURIComponent(id)}/json` }, inspected);
  }

  #isOurs({ Config }: Inspected): boolean {
    return Config.Labels[MACHINE_LABELS.installation] === this.#parts.installationId;
  }
}

function volumeOf(name: string): string {
  return `${name}-secrets`;
}

function machineOf({ Id, Created, State, Config }: Inspected): Machine {
  const state = STATES[State.Status] ?? "pending";
  return {
    id: Id,
    label: Config.Labels[MACHINE_LABELS.request] ?? "",
    state,
    // Uses this machine's network.
    ip: state === "running" ? "127.0.0.1" : null,
    location: LOCATION,
    createdAt: Date.parse(Created),
    failure: failureOf(State),
  };
}

function failureOf({ Status, ExitCode, Error: words }: Inspected["State"]): string | null {
  if (Status === "created") return "its container was created, but never started";
  return STATES[Status] === "failed" ? `its container exited with ${ExitCode}. ${words}`.trim() : null;
}

const STATES: Readonly<Record<string, MachineState>> = {
  // Its creator starts it immediately; if it died in between, nothing else does.
  created: "failed",
  running: "running",
  paused: "running",
  restarting: "pending",
  removing: "stopping",
  exited: "failed",
  dead: "failed",
};

function refusal(kind: ProviderRefusal["kind"], providerWords: string): ProviderRefusal {
  return new ProviderRefusal({ kind, providerWords });
}

async function unlessMissing<T>(answer: Promise<T>): Promise<T | null> {
  return answer.catch((error: unknown) => {
    if (error instanceof DockerEngineError && error.status === 404) return null;
    throw error;
  });
}

/** Maps Docker's errors to those of the interface. */
async function asRefusal<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof DockerEngineError)) throw error;
    const { status, message } = error;
    if (status === 409) throw refusal("already_exists", message);
    // Only for creates; reads return null.
    if (status === 404) throw refusal("bad_input", `${message} (create it with scripts/build-machine-image)`);
    throw refusal(status === 400 ? "bad_input" : "unavailable", message);
  }
}
