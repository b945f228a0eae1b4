import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SecretAnswer } from "@fairlead/protocol/secrets";
import type { WorkloadSpec } from "@fairlead/protocol/workload";
import { generateNodeKeys } from "../link/node-keys.ts";
import type { Container } from "../runtime/container-runtime.ts";
import { MemoryRuntime } from "../runtime/memory-runtime.ts";
import type { NodeKeys } from "../state/identity-store.ts";
import { anAgent, aSpec, OWNER } from "../testing/builders.ts";
import { createOnNetwork } from "../testing/create-on-network.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { MemoryFiles } from "../testing/memory-files.ts";
import { silentLog } from "../testing/silent-log.ts";
import { LeftSecrets } from "./left-secrets.ts";
import { NodeSecrets } from "./node-secrets.ts";
import { sealed } from "./seal.fixture.ts";
import { SecretFolders } from "./secret-folders.ts";
import { SecretVault } from "./secret-vault.ts";

/** A control plane that delivers secrets over the link. */
export class Platform {
  readonly answers = new Map<string, SecretAnswer>();
  readonly asked: string[] = [];
  down = false;

  async secret({ name }: { readonly name: string }): Promise<SecretAnswer> {
    this.asked.push(name);
    if (this.down) throw new Error("the call failed");
    return this.answers.get(name) ?? { state: "missing" };
  }
}

/** A node's machine: its disk, engine and folders survive restarts of the daemon. */
export class SecretsMachine {
  readonly base = mkdtempSync(join(tmpdir(), "fairlead-secrets-"));
  readonly files = new MemoryFiles();
  readonly time = new FakeTime();
  readonly runtime = new MemoryRuntime(this.time);
  readonly platform = new Platform();
  /** Number of notifications that missing secrets may have arrived. */
  changes = 0;
  readonly #keys: NodeKeys;

  private constructor(keys: NodeKeys) {
    this.#keys = keys;
    for (const { image } of [aSpec(), anAgent()]) {
      this.runtime.addImage(image);
      this.runtime.users.set(image, process.getuid?.() ?? 0);
    }
  }

  static async create(): Promise<SecretsMachine> {
    return new SecretsMachine(await generateNodeKeys());
  }

  async startDaemon(): Promise<NodeSecrets> {
    const { files, runtime, time: timers } = this;
    const vault = new SecretVault({ files, folder: "/state", nodeId: OWNER.nodeId, keys: this.#keys });
    await vault.load();
    const folders = new SecretFolders(join(this.base, "run"));
    const left = new LeftSecrets({ root: join(this.base, "nodes"), nodeId: OWNER.nodeId, runtime, clock: timers });
    const onChange = (): void => {
      this.changes += 1;
    };
    return new NodeSecrets({ vault, folders, left, runtime, timers, random: () => 1, log: silentLog, onChange });
  }

  /** Sets a secret on the platform. */
  async set(name: string, value: string, version = "1.a"): Promise<void> {
    this.platform.answers.set(name, await sealed({ keys: this.#keys, name, value, version }));
  }

  /** Does what the executor does for a create and a start. */
  async run(secrets: NodeSecrets, spec: WorkloadSpec, name: string): Promise<Container> {
    const given = await secrets.prepare(name, spec);
    const plan = { spec, name, owner: OWNER, projectId: "p", generation: 1, secrets: given };
    const id = await createOnNetwork(this.runtime, plan);
    await secrets.place({ id, name });
    await this.runtime.start(id);
    const container = await this.runtime.inspect(id);
    if (container === null) throw new Error("it was just made");
    return container;
  }

  /** Contents of a file in a container's folder, or null. */
  placed(name: string, container: string): string | null {
    try {
      return readFileSync(join(this.base, "run", container, name), "utf8");
    } catch {
      return null;
    }
  }

  remove(): void {
    rmSync(this.base, { recursive: true });
  }
}
