import { keyOfSecret, SECRETS_MOUNT_PATH, WORKER_TOKEN_FILE, type WorkloadSecret } from "@fairlead/protocol/secrets";
import { type DesiredState, WORKLOAD_TYPE_ENGINE, type WorkloadSpec } from "@fairlead/protocol/workload";
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
import { hasFolder, secretFilesOf, takesToken, workloadOf } from "../runtime/ownership.ts";
import type { Timers } from "../timers.ts";
import { registryAuthFrom } from "./registry-auth.ts";
import { NOT_SET, SecretFetcher } from "./secret-fetcher.ts";
import type { SecretFolders } from "./secret-folders.ts";
import type { SecretVault } from "./secret-vault.ts";
import { describeMissing, type MissingSecret, type WorkloadSecrets } from "./workload-secrets.ts";
import type { TokenFiles } from "./workload-tokens.ts";

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
export class NodeSecrets implements WorkloadSecrets, WorkloadFiles, TokenFiles {
  readonly #deps: NodeSecretsDeps;
  readonly #fetcher: SecretFetcher;
  readonly registryAuth: RegistryAuth;
  /** Folders of containers that are being made: no list shows them yet. */
  readonly #coming = new Set<string>();
  readonly #owners = new Map<string, number>();
  /** Files of the daemon's own, by workload and name; null: none of its containers may have it. */
  readonly #own = new Map<string, Map<string, Uint8Array | null>>();
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

  missing(spec: WorkloadSpec): readonly MissingSecret[] {
    const missing = this.#missingSecrets(spec);
    return spec.workerToken === true && !this.#holdsToken(spec.workloadId) ? [...missing, MISSING_TOKEN] : missing;
  }

  #missingSecrets({ secrets = [] }: WorkloadSpec): readonly MissingSecret[] {
    return secrets.flatMap((secret) => {
      const { name, as, version } = secret;
      if (version === null) return [{ name, as, why: NOT_SET }];
      const held = this.#deps.vault.versionOf(keyOfSecret(secret));
      // Files and logins follow a change while the workload runs, so an earlier value serves until the new one is here.
      if (held !== null && (as !== "env" || held === version)) return [];
      return [{ name, as, why: this.#fetcher.problemWith(keyOfSecret(secret)) ?? "has not been delivered yet" }];
    });
  }

  /** For the machine's condition `secrets`. */
  finding(): Finding {
    const told = new Set(
      this.#desired?.workloads.flatMap((spec) => {
        // Those of agents are theirs, so that a name alone does not say which.
        const whose = spec.workloadType === WORKLOAD_TYPE_ENGINE ? "" : ` of ${spec.name}`;
        return this.#missingSecrets(spec).map(({ name, why }) => `${name}${whose} ${why}`);
      }),
    );
    if (told.size > 0) {
      return { status: "problem", reason: "missing_secrets", message: [...told].join("; ") };
    }
    if (this.#notPlaced !== null) return { status: "problem", reason: "not_placed", message: this.#notPlaced };
    if (this.#inMemory) return OK;
    const message = `opened secrets rest on a disk: ${this.#deps.folders.root} is on no tmpfs; give --runtime-dir a folder that is`;
    return { status: "problem", reason: "on_disk", message };
  }

  /** A file of the daemon's own, beside the secrets in the folder of every container of the workload. */
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
      const reason = `the folder of its secrets cannot be made: ${reasonOf(error)}`;
      if (spec.workerToken === true || secrets.some(({ as }) => as === "file"))
        throw new RuntimeError("rejected", reason);
      // The daemon's own files are a convenience: without them it runs as well.
      this.#deps.log.warn({ container: name }, reason);
      return null;
    });
    return { folder, env };
  }

  async place({ id }: Pick<Container, "id" | "name">): Promise<void> {
    const container = await this.#deps.runtime.inspect(id);
    if (container === null || !hasFolder(container.labels)) return;
    const lacking = secretFilesOf(container.labels).filter(({ key }) => this.#deps.vault.versionOf(key) === null);
    const missing: MissingSecret[] = lacking.map(({ name, key }) => ({
      name,
      as: "file",
      why: this.#fetcher.problemWith(key) ?? NOT_SET,
    }));
    if (takesToken(container.labels) && !this.#holdsToken(workloadOf(container))) missing.push(MISSING_TOKEN);
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

  async #textOf(secret: WorkloadSecret): Promise<string> {
    const value = await this.#deps.vault.open(keyOfSecret(secret));
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(value ?? undefined);
    if (text.includes("\0"))
      throw new RuntimeError("rejected", `the secret ${secret.name} cannot be an environment variable: it holds a NUL`);
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
    await this.#adoptToken(container);
    const files = new Map<string, Uint8Array>();
    for (const [file, bytes] of this.#own.get(workloadOf(container)) ?? []) if (bytes !== null) files.set(file, bytes);
    // A secret of the same name is what somebody set.
    for (const file of secretFilesOf(labels)) {
      const value = await this.#deps.vault.open(file.key);
      if (value !== null) files.set(file.name, value);
    }
    // The engine looks into a container only while all that it mounts is there; after a reboot the folder is not.
    await this.#deps.folders.make(name);
    await this.#deps.folders.fill(name, { owner: await this.#ownerOf(id), files });
  }

  /** What a daemon before this one gave it: it holds until another comes, so that no restart of ours takes it away. */
  async #adoptToken(container: Container): Promise<void> {
    const workloadId = workloadOf(container);
    if (!takesToken(container.labels) || this.#own.get(workloadId)?.has(WORKER_TOKEN_FILE)) return;
    const token = await this.#deps.folders.read(container.name, WORKER_TOKEN_FILE);
    if (token !== null) this.put(workloadId, WORKER_TOKEN_FILE, token);
  }

  async #ownerOf(id: string): Promise<number> {
    const owner = this.#owners.get(id) ?? (await this.#deps.runtime.userOf(id));
    this.#owners.set(id, owner);
    return owner;
  }

  /** A container of an older spec may still need what the desired state no longer names. */
  async #forgetUnneeded(containers: readonly Container[]): Promise<void> {
    if (this.#desired === null) return;
    const needed = new Set(containers.flatMap(({ labels }) => secretFilesOf(labels).map(({ key }) => key)));
    const { vault } = this.#deps;
    for (const name of vault.names()) if (!needed.has(name) && !this.#fetcher.wants(name)) vault.forget(name);
    const workloads = new Set([
      ...this.#desired.workloads.map((spec) => spec.workloadId),
      ...containers.map(workloadOf),
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

/** What a workload that asks for a token waits for. */
const MISSING_TOKEN: MissingSecret = { name: WORKER_TOKEN_FILE, as: "file", why: "the platform has not issued yet" };

function takesSecrets({ labels }: Container): boolean {
  return takesToken(labels) || secretFilesOf(labels).length > 0;
}
