import { keyOfSecret, SECRETS_MOUNT_PATH, WORKER_TOKEN_FILE, type WorkloadSecret } from "@fairlead/protocol/secrets";
import { type DesiredState, WORKLOAD_TYPE_ENGINE, type WorkloadSpec } from "@fairlead/protocol/workload";
import type { WorkloadFiles } from "../gateway/connect-files.ts";
import { type ConditionFinding, OK } from "../host/condition-rules.ts";
import type { LinkConnection } from "../link/control-link.ts";
import { type DaemonLog, reasonOf } from "../process/log.ts";
import type { Timers } from "../process/timers.ts";
import {
  type Container,
  type ContainerRuntime,
  type ContainerSecrets,
  type RegistryAuth,
  RuntimeError,
} from "../runtime/container-runtime.ts";
import { containerWorkload, hasFolder, secretFilesOf, takesToken } from "../runtime/ownership.ts";
import { hasEnded, type LeftSecrets } from "./left-secrets.ts";
import { registryAuthFrom } from "./registry-auth.ts";
import { NOT_SET, SecretFetcher } from "./secret-fetcher.ts";
import type { SecretFolders } from "./secret-folders.ts";
import type { SecretVault } from "./secret-vault.ts";
import { describeMissing, type MissingWorkloadSecret, type WorkloadSecrets } from "./workload-secrets.ts";
import type { TokenFiles } from "./workload-tokens.ts";

export interface NodeSecretsDeps {
  readonly vault: SecretVault;
  readonly folders: SecretFolders;
  readonly left: LeftSecrets;
  readonly runtime: Pick<ContainerRuntime, "inspect" | "userOf">;
  readonly timers: Timers;
  readonly random: () => number;
  readonly log: DaemonLog;
  /** The set of missing secrets may have changed. */
  readonly onChange: () => void;
}

/**
 * A node's secrets, from the link to the containers: stored encrypted in the vault, decrypted on use, and placed as
 * files on a tmpfs that containers mount. Folders are changed one at a time.
 */
export class NodeSecrets implements WorkloadSecrets, WorkloadFiles, TokenFiles {
  readonly #deps: NodeSecretsDeps;
  readonly #fetcher: SecretFetcher;
  readonly registryAuth: RegistryAuth;
  /** Folders of containers that are being created and not listed yet. */
  readonly #coming = new Set<string>();
  /** Previous start times of containers that are being started; until then they look stopped. */
  readonly #starting = new Map<string, string | null>();
  readonly #owners = new Map<string, number>();
  /** The daemon's own files, by workload and name; null removes the file from all containers. */
  readonly #own = new Map<string, Map<string, Uint8Array | null>>();
  #desired: DesiredState | null = null;
  #containers: readonly Container[] | null = null;
  #placed = "";
  #leftRemoved = false;
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

  /** Keeps the folders of these containers, in any state, and removes all others. */
  observed(containers: readonly Container[]): void {
    this.#containers = containers;
    void this.#tidy();
  }

  missing(spec: WorkloadSpec): readonly MissingWorkloadSecret[] {
    const missing = this.#missingSecrets(spec);
    return spec.workerToken === true && !this.#holdsToken(spec.workloadId) ? [...missing, MISSING_TOKEN] : missing;
  }

  #missingSecrets({ secrets = [] }: WorkloadSpec): readonly MissingWorkloadSecret[] {
    return secrets.flatMap((secret) => {
      const { name, as, version } = secret;
      if (version === null) return [{ name, as, why: NOT_SET }];
      const held = this.#deps.vault.versionOf(keyOfSecret(secret));
      // Files and logins are updated while the workload runs, so the old value is used until the new one arrives.
      if (held !== null && (as !== "env" || held === version)) return [];
      return [{ name, as, why: this.#fetcher.problemWith(keyOfSecret(secret)) ?? "has not been delivered yet" }];
    });
  }

  /** The machine condition `secrets`. */
  finding(): ConditionFinding {
    const told = new Set(
      this.#desired?.workloads.flatMap((spec) => {
        // Agents have their own secrets, so a name alone is ambiguous.
        const whose = spec.workloadType === WORKLOAD_TYPE_ENGINE ? "" : ` of ${spec.name}`;
        return this.#missingSecrets(spec).map(({ name, why }) => `${name}${whose} ${why}`);
      }),
    );
    if (told.size > 0) {
      return { status: "problem", reason: "missing_secrets", message: [...told].join("; ") };
    }
    if (this.#notPlaced !== null) return { status: "problem", reason: "not_placed", message: this.#notPlaced };
    if (this.#inMemory) return OK;
    const message = `decrypted secrets are stored on disk: ${this.#deps.folders.root} is not on a tmpfs; set --runtime-dir to a folder on a tmpfs`;
    return { status: "problem", reason: "on_disk", message };
  }

  /** Sets one of the daemon's own files in the secrets folder of all containers of the workload. */
  put(workloadId: string, name: string, bytes: Uint8Array): void {
    const heldToken = this.#holdsToken(workloadId);
    this.#setOwn(workloadId, name, bytes);
    if (!heldToken && this.#holdsToken(workloadId)) this.#deps.onChange();
  }

  withdraw(workloadId: string, name: string): void {
    this.#setOwn(workloadId, name, null);
  }

  #setOwn(workloadId: string, name: string, bytes: Uint8Array | null): void {
    const files = this.#own.get(workloadId) ?? new Map<string, Uint8Array | null>();
    files.set(name, bytes);
    this.#own.set(workloadId, files);
    this.#revision += 1;
    void this.#tidy();
  }

  #holdsToken(workloadId: string): boolean {
    return this.#own.get(workloadId)?.get(WORKER_TOKEN_FILE) instanceof Uint8Array;
  }

  async prepare(name: string, spec: WorkloadSpec): Promise<ContainerSecrets | null> {
    const { secrets = [] } = spec;
    const missing = this.missing(spec);
    if (missing.length > 0) throw new RuntimeError("rejected", describeMissing(missing));
    const env: Record<string, string> = {};
    for (const secret of secrets) if (secret.as === "env") env[secret.name] = await this.#textOf(secret);
    this.#coming.add(name);
    const folder = await this.#inTurn(() => this.#deps.folders.make(name)).catch((error: unknown) => {
      const reason = `cannot create its secrets folder: ${reasonOf(error)}`;
      if (spec.workerToken === true || secrets.some(({ as }) => as === "file"))
        throw new RuntimeError("rejected", reason);
      // The daemon's own files are optional.
      this.#deps.log.warn({ container: name }, reason);
      return null;
    });
    return { folder, env };
  }

  async place({ id }: Pick<Container, "id" | "name">): Promise<void> {
    const container = await this.#deps.runtime.inspect(id);
    if (container === null || !hasFolder(container.labels)) return;
    const lacking = secretFilesOf(container.labels).filter(({ key }) => this.#deps.vault.versionOf(key) === null);
    const missing: MissingWorkloadSecret[] = lacking.map(({ name, key }) => ({
      name,
      as: "file",
      why: this.#fetcher.problemWith(key) ?? NOT_SET,
    }));
    if (takesToken(container.labels) && !this.#holdsToken(containerWorkload(container))) missing.push(MISSING_TOKEN);
    if (missing.length > 0) throw new RuntimeError("rejected", describeMissing(missing));
    this.#starting.set(container.name, container.startedAt);
    await this.#inTurn(() => this.#fill(container)).catch((error: unknown) => {
      // The daemon's own files are optional.
      if (!takesSecrets(container)) return;
      if (error instanceof RuntimeError) throw error;
      throw new RuntimeError("rejected", `cannot write its secrets to ${SECRETS_MOUNT_PATH}: ${reasonOf(error)}`);
    });
  }

  async discard(name: string): Promise<void> {
    this.#coming.delete(name);
    await this.#inTurn(() => this.#deps.folders.remove(name)).catch((error: unknown) => {
      this.#deps.log.warn({ reason: reasonOf(error) }, "could not remove a secrets folder; retrying");
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

  async #textOf(secret: WorkloadSecret): Promise<string> {
    const value = await this.#deps.vault.open(keyOfSecret(secret));
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(value ?? undefined);
    if (text.includes("\0"))
      throw new RuntimeError(
        "rejected",
        `the secret ${secret.name} contains a NUL byte, so it cannot be an environment variable`,
      );
    return text;
  }

  /** Updates all folders from the vault and the existing containers. */
  #tidy(): Promise<void> {
    return this.#inTurn(async () => {
      const containers = this.#containers;
      if (containers === null) return;
      const picture = JSON.stringify([this.#revision, containers.map((each) => [each.id, this.#isOver(each)])]);
      if (picture === this.#placed) return;
      const before = this.finding().message;
      const failures = await this.#placeAll(containers).catch((error: unknown) => [reasonOf(error)]);
      this.#notPlaced = failures.length === 0 ? null : `could not write secrets: ${failures.join("; ")}`;
      // Failures are retried with the next snapshot.
      this.#placed = failures.length === 0 ? picture : "";
      if (this.finding().message === before) return;
      if (this.#notPlaced !== null) this.#deps.log.warn(this.#notPlaced);
      this.#deps.onChange();
    });
  }

  /** @returns the errors, by container. */
  async #placeAll(containers: readonly Container[]): Promise<string[]> {
    const { folders } = this.#deps;
    const failures: string[] = [];
    for (const container of containers) {
      this.#coming.delete(container.name);
      if (!hasFolder(container.labels)) continue;
      const placing = this.#isOver(container) ? this.#empty(container) : this.#fill(container);
      await placing.catch((error: unknown) => {
        if (takesSecrets(container)) failures.push(`${container.name}: ${reasonOf(error)}`);
      });
    }
    const kept = new Set([...containers.map(({ name }) => name), ...this.#coming]);
    for (const name of await folders.list()) if (!kept.has(name)) await folders.remove(name);
    for (const name of this.#starting.keys()) if (!kept.has(name)) this.#starting.delete(name);
    if (!this.#leftRemoved) this.#leftRemoved = await this.#removeLeft();
    this.#inMemory = !containers.some(takesSecrets) || (await folders.inMemory());
    await this.#forgetUnneeded(containers);
    return failures;
  }

  async #fill(container: Container): Promise<void> {
    const { id, name, labels } = container;
    await this.#adoptToken(container);
    const files = new Map<string, Uint8Array>();
    for (const [file, bytes] of this.#own.get(containerWorkload(container)) ?? [])
      if (bytes !== null) files.set(file, bytes);
    // A secret of the same name takes precedence.
    for (const file of secretFilesOf(labels)) {
      const value = await this.#deps.vault.open(file.key);
      if (value !== null) files.set(file.name, value);
    }
    // Inspecting a container requires its mounts, and after a reboot the folder is missing.
    await this.#deps.folders.make(name);
    await this.#deps.folders.fill(name, { owner: await this.#ownerOf(id), files });
  }

  /** Whether it has stopped and is not being started. */
  #isOver(container: Container): boolean {
    return hasEnded(container) && this.#starting.get(container.name) !== container.startedAt;
  }

  /** @returns whether it succeeded; otherwise it is retried on the next change of the containers. */
  async #removeLeft(): Promise<boolean> {
    try {
      await this.#deps.left.remove();
      return true;
    } catch (error) {
      this.#deps.log.warn({ reason: reasonOf(error) }, "could not remove secrets left by other nodes");
      return false;
    }
  }

  /** Removes the files of a stopped container; they are written again before it starts. */
  async #empty(container: Container): Promise<void> {
    await this.#adoptToken(container);
    await this.#deps.folders.empty(container.name);
  }

  /** A token from before a restart of the daemon stays until it is replaced. */
  async #adoptToken(container: Container): Promise<void> {
    const workloadId = containerWorkload(container);
    if (!takesToken(container.labels) || this.#own.get(workloadId)?.has(WORKER_TOKEN_FILE)) return;
    const token = await this.#deps.folders.read(container.name, WORKER_TOKEN_FILE);
    if (token !== null) this.put(workloadId, WORKER_TOKEN_FILE, token);
  }

  async #ownerOf(id: string): Promise<number> {
    const owner = this.#owners.get(id) ?? (await this.#deps.runtime.userOf(id));
    this.#owners.set(id, owner);
    return owner;
  }

  /** A container of an older spec may need secrets that the desired state no longer names. */
  async #forgetUnneeded(containers: readonly Container[]): Promise<void> {
    if (this.#desired === null) return;
    const needed = new Set(containers.flatMap(({ labels }) => secretFilesOf(labels).map(({ key }) => key)));
    const { vault } = this.#deps;
    for (const name of vault.names()) if (!needed.has(name) && !this.#fetcher.wants(name)) vault.forget(name);
    const workloads = new Set([
      ...this.#desired.workloads.map((spec) => spec.workloadId),
      ...containers.map(containerWorkload),
    ]);
    for (const workloadId of this.#own.keys()) if (!workloads.has(workloadId)) this.#own.delete(workloadId);
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

/** Reported while a workload waits for its token. */
const MISSING_TOKEN: MissingWorkloadSecret = {
  name: WORKER_TOKEN_FILE,
  as: "file",
  why: "the platform has not issued yet",
};

function takesSecrets({ labels }: Container): boolean {
  return takesToken(labels) || secretFilesOf(labels).length > 0;
}
