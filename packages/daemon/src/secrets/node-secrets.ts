import { SECRETS_MOUNT_PATH } from "@fairlead/protocol/secrets";
import type { DesiredState, WorkloadSpec } from "@fairlead/protocol/workload";
import type { WorkloadFiles } from "../gateway/connect-files.ts";
import { type Finding, OK } from "../host/condition-rules.ts";
import type { LinkConnection } from "../link/control-link.ts";
import { type Log, reasonOf } from "../log.ts";
import {
  type Container,
  type ContainerRuntime,
  type ContainerSecrets,
  type RegistryAuth,
  RuntimeError,
} from "../runtime/container-runtime.ts";
import { hasFolder, secretFilesOf, workloadOf } from "../runtime/ownership.ts";
import type { Timers } from "../timers.ts";
import { registryAuthFrom } from "./registry-auth.ts";
import { NOT_SET, SecretFetcher } from "./secret-fetcher.ts";
import type { SecretFolders } from "./secret-folders.ts";
import type { SecretVault } from "./secret-vault.ts";
import { describeMissing, type MissingSecret, type WorkloadSecrets } from "./workload-secrets.ts";

export interface NodeSecretsDeps {
  readonly vault: SecretVault;
  readonly folders: SecretFolders;
  readonly runtime: Pick<ContainerRuntime, "inspect" | "userOf">;
  readonly timers: Timers;
  readonly random: () => number;
  readonly log: Log;
  /** Something that was missing may be here, or the other way round. */
  readonly onChange: () => void;
}

/**
 * A node's secrets, from the link to the containers: held sealed in the vault, opened for the moment of use, and placed as
 * files on a tmpfs where a container mounts them. One change of the folders at a time.
 */
export class NodeSecrets implements WorkloadSecrets, WorkloadFiles {
  readonly #deps: NodeSecretsDeps;
  readonly #fetcher: SecretFetcher;
  readonly registryAuth: RegistryAuth;
  /** Folders of containers that are being made: no list shows them yet. */
  readonly #coming = new Set<string>();
  readonly #owners = new Map<string, number>();
  /** Files of the daemon's own, by workload and name. */
  readonly #own = new Map<string, Map<string, Uint8Array>>();
  #desired: DesiredState | null = null;
  #containers: readonly Container[] | null = null;
  #placed = "";
  #notPlaced: string | null = null;
  #inMemory = true;
  #revision = 0;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(deps: NodeSecretsDeps) {
    this.#deps = deps;
    this.#fetcher = new SecretFetcher({ ...deps, onChange: () => this.#vaultChanged() });
    this.registryAuth = registryAuthFrom(deps.vault, () => this.#fetcher.fetching());
  }

  desiredChanged(desired: DesiredState): void {
    this.#desired = desired;
    this.#fetcher.desiredChanged(desired);
  }

  attach(connection: Pick<LinkConnection, "secret">): void {
    this.#fetcher.attach(connection);
  }

  detach(): void {
    this.#fetcher.detach();
  }

  /** These containers of ours there are, in whatever state: each keeps its folder, and no other one stays. */
  observed(containers: readonly Container[]): void {
    this.#containers = containers;
    void this.#tidy();
  }

  missing({ secrets = [] }: WorkloadSpec): readonly MissingSecret[] {
    return secrets.flatMap(({ name, as, version }) => {
      if (version === null) return [{ name, as, why: NOT_SET }];
      const held = this.#deps.vault.versionOf(name);
      // Files and logins follow a change while the workload runs, so an earlier value serves until the new one is here.
      if (held !== null && (as !== "env" || held === version)) return [];
      return [{ name, as, why: this.#fetcher.problemWith(name) ?? "has not been delivered yet" }];
    });
  }

  /** For the machine's condition `secrets`. */
  finding(): Finding {
    const missing = this.#desired?.workloads.flatMap((spec) => this.missing(spec)) ?? [];
    if (missing.length > 0) {
      const told = new Set(missing.map(({ name, why }) => `${name} ${why}`));
      return { status: "problem", reason: "missing_secrets", message: [...told].join("; ") };
    }
    if (this.#notPlaced !== null) return { status: "problem", reason: "not_placed", message: this.#notPlaced };
    if (this.#inMemory) return OK;
    const message = `opened secrets rest on a disk: ${this.#deps.folders.root} is on no tmpfs; give --runtime-dir a folder that is`;
    return { status: "problem", reason: "on_disk", message };
  }

  /** A file of the daemon's own, beside the secrets in the folder of every container of the workload. */
  put(workloadId: string, name: string, bytes: Uint8Array): void {
    const files = this.#own.get(workloadId) ?? new Map<string, Uint8Array>();
    files.set(name, bytes);
    this.#own.set(workloadId, files);
    this.#revision += 1;
    void this.#tidy();
  }

  async prepare(name: string, spec: WorkloadSpec): Promise<ContainerSecrets | null> {
    const { secrets = [] } = spec;
    const missing = this.missing(spec);
    if (missing.length > 0) throw new RuntimeError("rejected", describeMissing(missing));
    const env: Record<string, string> = {};
    for (const { name: variable, as } of secrets) if (as === "env") env[variable] = await this.#textOf(variable);
    this.#coming.add(name);
    const folder = await this.#inTurn(() => this.#deps.folders.make(name)).catch((error: unknown) => {
      const reason = `the folder of its secrets cannot be made: ${reasonOf(error)}`;
      if (secrets.some(({ as }) => as === "file")) throw new RuntimeError("rejected", reason);
      // The daemon's own files are a convenience: without them it runs as well.
      this.#deps.log.warn({ container: name }, reason);
      return null;
    });
    return { folder, env };
  }

  async place({ id }: Pick<Container, "id" | "name">): Promise<void> {
    const container = await this.#deps.runtime.inspect(id);
    if (container === null || !hasFolder(container.labels)) return;
    const lacking = secretFilesOf(container.labels).filter((file) => this.#deps.vault.versionOf(file) === null);
    const missing = lacking.map((file) => ({
      name: file,
      as: "file" as const,
      why: this.#fetcher.problemWith(file) ?? NOT_SET,
    }));
    if (missing.length > 0) throw new RuntimeError("rejected", describeMissing(missing));
    await this.#inTurn(() => this.#fill(container)).catch((error: unknown) => {
      // Without the daemon's own files it runs as well.
      if (!takesSecrets(container)) return;
      if (error instanceof RuntimeError) throw error;
      throw new RuntimeError("rejected", `its secrets cannot be placed in ${SECRETS_MOUNT_PATH}: ${reasonOf(error)}`);
    });
  }

  async discard(name: string): Promise<void> {
    this.#coming.delete(name);
    await this.#inTurn(() => this.#deps.folders.remove(name)).catch((error: unknown) => {
      this.#deps.log.warn({ reason: reasonOf(error) }, "a folder of secrets could not be removed; trying again");
      this.#placed = "";
    });
  }

  async close(): Promise<void> {
    await this.#fetcher.close();
    await this.#queue;
  }

  #vaultChanged(): void {
    this.#revision += 1;
    void this.#tidy();
    this.#deps.onChange();
  }

  async #textOf(name: string): Promise<string> {
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode((await this.#deps.vault.open(name)) ?? undefined);
    if (text.includes("\0"))
      throw new RuntimeError("rejected", `the secret ${name} cannot be an environment variable: it holds a NUL`);
    return text;
  }

  /** Brings every folder up to the vault and the containers that there are. */
  #tidy(): Promise<void> {
    return this.#inTurn(async () => {
      const containers = this.#containers;
      if (containers === null) return;
      const picture = JSON.stringify([this.#revision, containers.map(({ id, name }) => [id, name])]);
      if (picture === this.#placed) return;
      const before = this.finding().message;
      const failures = await this.#placeAll(containers).catch((error: unknown) => [reasonOf(error)]);
      this.#notPlaced = failures.length === 0 ? null : `secrets could not be placed: ${failures.join("; ")}`;
      // What failed is tried again with the next picture.
      this.#placed = failures.length === 0 ? picture : "";
      if (this.finding().message === before) return;
      if (this.#notPlaced !== null) this.#deps.log.warn(this.#notPlaced);
      this.#deps.onChange();
    });
  }

  /** @returns what went wrong, by container. */
  async #placeAll(containers: readonly Container[]): Promise<string[]> {
    const { folders } = this.#deps;
    const failures: string[] = [];
    for (const container of containers) {
      this.#coming.delete(container.name);
      if (!hasFolder(container.labels)) continue;
      await this.#fill(container).catch((error: unknown) => {
        if (takesSecrets(container)) failures.push(`${container.name}: ${reasonOf(error)}`);
      });
    }
    const kept = new Set([...containers.map(({ name }) => name), ...this.#coming]);
    for (const name of await folders.list()) if (!kept.has(name)) await folders.remove(name);
    this.#inMemory = !containers.some(takesSecrets) || (await folders.inMemory());
    await this.#forgetUnneeded(containers);
    return failures;
  }

  async #fill(container: Container): Promise<void> {
    const { id, name, labels } = container;
    // A secret of the same name is what somebody set.
    const files = new Map(this.#own.get(workloadOf(container)));
    for (const file of secretFilesOf(labels)) {
      const value = await this.#deps.vault.open(file);
      if (value !== null) files.set(file, value);
    }
    // The engine looks into a container only while all that it mounts is there; after a reboot the folder is not.
    await this.#deps.folders.make(name);
    await this.#deps.folders.fill(name, { owner: await this.#ownerOf(id), files });
  }

  async #ownerOf(id: string): Promise<number> {
    const owner = this.#owners.get(id) ?? (await this.#deps.runtime.userOf(id));
    this.#owners.set(id, owner);
    return owner;
  }

  /** A container of an older spec may still need what the desired state no longer names. */
  async #forgetUnneeded(containers: readonly Container[]): Promise<void> {
    if (this.#desired === null) return;
    const needed = new Set(containers.flatMap(({ labels }) => secretFilesOf(labels)));
    const { vault } = this.#deps;
    for (const name of vault.names()) if (!needed.has(name) && !this.#fetcher.wants(name)) vault.forget(name);
    const ids = new Set(containers.map(({ id }) => id));
    for (const id of this.#owners.keys()) if (!ids.has(id)) this.#owners.delete(id);
    await vault.save();
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#queue.then(work);
    this.#queue = turn.catch(() => undefined);
    return turn;
  }
}

function takesSecrets({ labels }: Container): boolean {
  return secretFilesOf(labels).length > 0;
}
