import { type BackoffOptions, ceiling } from "@fairlead/protocol/backoff";
import type { Clock } from "@fairlead/protocol/clock";
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import { UnsealError } from "../auth/sealer.ts";
import type { Database } from "../db/schema.ts";
import type { NodeRecord } from "../nodes/node.ts";
import type { HeldNode, NodeMachineService } from "../nodes/node-machine-service.ts";
import { type MachineRecord, type MachineStep, planIdOf } from "./machine.ts";
import { type Machine, type MachineProvider, ProviderRefusal, type RefusalKind } from "./machine-provider.ts";
import type { MachineSecrets } from "./machine-secrets.ts";
import type { MachineChanges, MachineStore } from "./machine-store.ts";
import type { ProvisioningOptions } from "./provisioning-settings.ts";
import { renderUserData } from "./user-data.ts";

export interface ProvisioningDeps {
  readonly machines: MachineStore;
  /** On the transaction of somebody else. */
  readonly machinesOn: (transaction: Kysely<Database>) => MachineStore;
  readonly nodes: NodeMachineService;
  readonly providers: ReadonlyMap<string, MachineProvider>;
  readonly secrets: MachineSecrets;
  readonly clock: Clock;
  readonly log: Logger;
  readonly publicUrl: string;
  readonly options: ProvisioningOptions;
}

/** What one step works with. */
interface Turn {
  readonly record: MachineRecord;
  readonly node: NodeRecord;
  readonly provider: MachineProvider;
  readonly token: string;
}

/** How long a provider's list may not know what the provider has accepted. */
const LIST_LAG_MS = 60_000;
/** The least that a bootstrap token must still be good for, when a machine is to start with it. */
const BOOTSTRAP_LEFT_MS = 10 * 60_000;
const RETRY: BackoffOptions = { baseMs: 2000, maxMs: 60_000 };
const TOKEN_RETRY_MS = 30_000;

const TOKEN_REFUSALS: readonly RefusalKind[] = ["bad_token", "read_only_token", "wrong_project"];
const FINAL_REFUSALS: readonly RefusalKind[] = ["bad_input", "quota"];

/**
 * Brings each rented machine from its order to a daemon that has enrolled, and to its end at the provider (design §6,
 * Provisioning). One call does one step: whatever it decides is in the store before the provider hears of it, so that it may die
 * anywhere, and the next call goes on. One call at a time for each node.
 */
export class ProvisioningService {
  readonly #deps: ProvisioningDeps;
  readonly #troubles = new Map<string, { words: string; count: number }>();

  constructor(deps: ProvisioningDeps) {
    this.#deps = deps;
  }

  /** @returns milliseconds until the next step; null where nothing is left to do. */
  async advance(nodeId: string): Promise<number | null> {
    const record = await this.#deps.machines.find(nodeId);
    const node = await this.#deps.nodes.find(nodeId);
    if (record === null || node === null) return this.#over(nodeId);
    try {
      const provider = this.#deps.providers.get(record.provider);
      if (provider === undefined) throw notOffered(record.provider);
      const token = await this.#deps.secrets.openToken(record);
      const next = await this.#step({ record, node, provider, token });
      this.#troubles.delete(nodeId);
      return next;
    } catch (error) {
      return this.#afterTrouble(record, error);
    }
  }

  #step(turn: Turn): Promise<number | null> {
    switch (turn.record.step) {
      case "ordering":
        return this.#order(turn);
      case "booting":
        return this.#boot(turn);
      case "discarding":
        return this.#discard(turn);
      case "removing":
        return this.#remove(turn);
      case "serving":
      case "failed":
        return Promise.resolve(this.#over(turn.record.nodeId));
    }
  }

  /** Looks before it asks again: an answer may have been lost, by the network or by our own end. */
  async #order(turn: Turn): Promise<number | null> {
    const { record, provider, token } = turn;
    if (this.#isLate(record)) return this.#fail(turn, this.#late(turn));
    const found = record.attemptedAt === null ? [] : await provider.findByLabel(token, record.nodeId);
    const broken = found.find(({ state }) => state === "failed");
    if (broken !== undefined) return this.#changeStep(record, { step: "discarding", machineId: broken.id });
    const machine = found.find(({ state }) => state === "pending" || state === "running");
    if (machine !== undefined) return this.#accept(record, machine);
    return this.#ask(turn);
  }

  async #ask(turn: Turn): Promise<number | null> {
    const { provider, token } = turn;
    const [location = ""] = turn.record.locations;
    const ready = await this.#prepare(turn.record, location);
    if (ready === null) return 0;
    const { name, type, nodeId: label } = ready.record;
    const { publicUrl, options } = this.#deps;
    const userData = renderUserData({ publicUrl, bootstrapToken: ready.bootstrapToken, insecure: options.insecure });
    try {
      const machine = await provider.create(token, { label, name, type, location, userData });
      return await this.#accept(ready.record, machine);
    } catch (error) {
      if (!(error instanceof ProviderRefusal) || isOpen(error)) throw error;
      // By its own word there is none.
      await this.#changeStep(ready.record, { attemptedAt: turn.record.attemptedAt });
      if (error.kind === "no_capacity") return this.#elsewhere(turn, error.providerWords);
      if (FINAL_REFUSALS.includes(error.kind)) return this.#fail(turn, refusedWords(turn.record, error));
      throw error;
    }
  }

  /** Keeps what the machine will start with, and that it is asked for now. @returns null where the step is another by now. */
  async #prepare(
    record: MachineRecord,
    location: string,
  ): Promise<{ readonly record: MachineRecord; readonly bootstrapToken: string } | null> {
    const { secrets, nodes, clock } = this.#deps;
    const { nodeId, sealedBootstrap: sealed, bootstrapExpiresAt } = record;
    const isGood = sealed !== null && (bootstrapExpiresAt ?? 0) - clock.now() > BOOTSTRAP_LEFT_MS;
    const fresh = isGood ? null : await nodes.newToken(nodeId);
    const bootstrapToken = fresh?.token ?? (await secrets.openBootstrap(nodeId, sealed ?? ""));
    const changes: MachineChanges = {
      attemptedAt: clock.now(),
      ...(fresh && {
        sealedBootstrap: await secrets.sealBootstrap(nodeId, fresh.token),
        bootstrapExpiresAt: fresh.expiresAt,
      }),
    };
    const written = await this.#write(record, changes, async (node) => {
      if (fresh !== null) await node.keepToken(fresh);
      if (record.attemptedAt === null) {
        await node.tell("machine_requested", `Asking ${record.provider} for a ${record.type} in ${location}.`);
      }
    });
    return written ? { record: { ...record, ...changes }, bootstrapToken } : null;
  }

  /** Even where the node is being deleted by now: whoever removes the machine is to know which one. */
  async #accept(record: MachineRecord, { id: machineId, location }: Machine): Promise<number> {
    const { nodes, machinesOn } = this.#deps;
    await nodes.hold(record.nodeId, async (transaction, node) => {
      const machines = machinesOn(transaction);
      const current = await machines.find(record.nodeId);
      const ordering = current?.step === "ordering";
      await machines.update(record.nodeId, { machineId, attemptedAt: null, ...(ordering ? { step: "booting" } : {}) });
      const message = `${record.provider} accepted it: machine ${machineId} in ${location}, which starts now.`;
      if (ordering) await node.tell("machine_accepted", message);
    });
    return 0;
  }

  async #boot(turn: Turn): Promise<number | null> {
    const { record, node, provider, token } = turn;
    const enrolled = node.enrolledAt !== null;
    const machine = await provider.get(token, record.machineId ?? "");
    if (machine === null || machine.state === "gone" || machine.state === "failed") {
      const words = machine?.failure ?? "it is not there any more";
      return this.#elsewhere(turn, `${record.provider} accepted machine ${record.machineId}, and then: ${words}`);
    }
    const late = this.#isLate(record);
    if (enrolled && (machine.ip !== null || late)) return this.#serve(record, machine.ip);
    if (late) return this.#fail(turn, this.#late(turn));
    if (machine.state === "running" && machine.ip !== null && node.publicIp === "") {
      await this.#tellRunning(record, machine.ip);
    }
    return this.#deps.options.pollMs;
  }

  async #tellRunning(record: MachineRecord, ip: string): Promise<void> {
    await this.#write(record, {}, async (node) => {
      await node.setPublicIp(ip);
      const reason = `The machine runs at ${ip}, and installs its daemon.`;
      if (node.record.enrolledAt === null) await node.apply("bootstrap_token_issued", reason);
    });
  }

  /** The provider's address stands above the one that enrolled (design §4). */
  async #serve(record: MachineRecord, ip: string | null): Promise<number | null> {
    const changes = { step: "serving", sealedBootstrap: null, bootstrapExpiresAt: null } as const;
    await this.#write(record, changes, async (node) => {
      if (ip !== null) await node.setPublicIp(ip);
    });
    return this.#over(record.nodeId);
  }

  /** The next place that was asked for, or the end. */
  async #elsewhere(turn: Turn, words: string): Promise<number | null> {
    const { record } = turn;
    const [here = "", next, ...more] = record.locations;
    if (next === undefined) return this.#fail(turn, `No ${planIdOf(record)} in ${here}: ${sentence(words)}`);
    const changes = { step: mayExist(record) ? "discarding" : "ordering", locations: [next, ...more] } as const;
    await this.#write(record, changes, (node) =>
      node.tell("location_refused", `No ${planIdOf(record)} in ${here}: ${sentence(words)} Trying ${next}.`),
    );
    return 0;
  }

  /** No machine is left behind that nobody uses: what may be there is removed. */
  async #fail({ record }: Turn, reason: string): Promise<number | null> {
    const step = mayExist(record) ? "discarding" : "failed";
    await this.#write(record, { step, locations: [] }, (node) => node.apply("provisioning_failed", reason));
    return 0;
  }

  async #discard(turn: Turn): Promise<number | null> {
    const { record } = turn;
    if (!(await this.#isCleared(turn))) return this.#deps.options.pollMs;
    const failed = record.locations.length === 0;
    const cleared = { machineId: null, attemptedAt: null, sealedBootstrap: null, bootstrapExpiresAt: null };
    await this.#write(record, { ...cleared, step: failed ? "failed" : "ordering" }, async (node) => {
      await node.setPublicIp("");
      if (failed) await node.tell("machine_removed", `${record.provider} has no machine for it any more.`);
    });
    return 0;
  }

  async #remove(turn: Turn): Promise<number | null> {
    if (!(await this.#isCleared(turn))) return this.#deps.options.pollMs;
    await this.#deps.nodes.hold(turn.record.nodeId, (_transaction, node) => node.forget());
    return this.#over(turn.record.nodeId);
  }

  /** Asks for the end of what is there. @returns whether the provider says that there is nothing. */
  async #isCleared({ record, provider, token }: Turn): Promise<boolean> {
    const { nodeId, machineId, attemptedAt } = record;
    if (!mayExist(record)) return true;
    const known = machineId === null ? null : await provider.get(token, machineId);
    const found = await provider.findByLabel(token, nodeId);
    const left = new Map<string, Machine>();
    for (const machine of [...found, known]) {
      if (machine !== null && machine.state !== "gone") left.set(machine.id, machine);
    }
    for (const { id, state } of left.values()) if (state !== "stopping") await provider.delete(token, id);
    if (left.size > 0) return false;
    return attemptedAt === null || this.#deps.clock.now() - attemptedAt >= LIST_LAG_MS;
  }

  async #changeStep(record: MachineRecord, changes: MachineChanges): Promise<number> {
    await this.#write(record, changes, async () => undefined);
    return 0;
  }

  /** All of one decision, in one transaction. @returns false where somebody has decided something else meanwhile. */
  async #write(
    record: MachineRecord,
    changes: MachineChanges,
    tell: (node: HeldNode) => Promise<void>,
  ): Promise<boolean> {
    const { nodes, machinesOn } = this.#deps;
    const written = await nodes.hold(record.nodeId, async (transaction, node) => {
      const machines = machinesOn(transaction);
      const step: MachineStep | undefined = (await machines.find(record.nodeId))?.step;
      if (step !== record.step) return false;
      if (Object.keys(changes).length > 0) await machines.update(record.nodeId, changes);
      await tell(node);
      return true;
    });
    return written ?? false;
  }

  async #afterTrouble(record: MachineRecord, error: unknown): Promise<number> {
    const { nodeId } = record;
    const refusal = asRefusal(error);
    if (!(error instanceof ProviderRefusal))
      this.#deps.log.warn({ err: error, nodeId }, "a step of a machine broke off");
    const before = this.#troubles.get(nodeId);
    const words = `${refusal.kind} ${refusal.providerWords}`;
    this.#troubles.set(nodeId, { words, count: (before?.count ?? 0) + 1 });
    if (before?.words !== words && refusal.kind !== "already_exists") {
      await this.#write(record, {}, (node) => node.tell("provider_trouble", troubleWords(record, refusal)));
    }
    if (await this.#isGivenUp(record, refusal)) return 0;
    const waitMs = TOKEN_REFUSALS.includes(refusal.kind) ? TOKEN_RETRY_MS : ceiling(RETRY, before?.count ?? 0);
    return Math.max(refusal.retryAfterMs ?? 0, waitMs);
  }

  /** A provider that does not answer until the deadline ends the waiting as well. */
  async #isGivenUp(record: MachineRecord, refusal: ProviderRefusal): Promise<boolean> {
    if (!["ordering", "booting"].includes(record.step) || !this.#isLate(record)) return false;
    const node = await this.#deps.nodes.find(record.nodeId);
    if (node === null) return false;
    if (node.enrolledAt !== null) {
      await this.#serve(record, null);
      return true;
    }
    const step = mayExist(record) ? "discarding" : "failed";
    const reason = `${this.#tooLate()} ${troubleWords(record, refusal)}`;
    return this.#write(record, { step, locations: [] }, (held) => held.apply("provisioning_failed", reason));
  }

  #isLate({ deadlineAt }: MachineRecord): boolean {
    return this.#deps.clock.now() >= deadlineAt;
  }

  #late({ node }: Turn): string {
    return `${this.#tooLate()} Last of all: ${node.statusMessage}`;
  }

  #tooLate(): string {
    return `No daemon enrolled within ${Math.round(this.#deps.options.deadlineMs / 60_000)} minutes.`;
  }

  #over(nodeId: string): null {
    this.#troubles.delete(nodeId);
    return null;
  }
}

function mayExist({ machineId, attemptedAt }: MachineRecord): boolean {
  return machineId !== null || attemptedAt !== null;
}

/** What leaves open whether there is a machine now. */
function isOpen({ kind }: ProviderRefusal): boolean {
  return kind === "unavailable" || kind === "already_exists";
}

function notOffered(provider: string): ProviderRefusal {
  return new ProviderRefusal({ kind: "unavailable", providerWords: `this server does not offer ${provider} any more` });
}

function asRefusal(error: unknown): ProviderRefusal {
  if (error instanceof ProviderRefusal) return error;
  if (error instanceof UnsealError) {
    return new ProviderRefusal({ kind: "bad_token", providerWords: "it was sealed by another master key" });
  }
  return new ProviderRefusal({ kind: "unavailable", providerWords: "it gave no answer that can be read" });
}

function sentence(words: string): string {
  return /[.!?]$/.test(words) ? words : `${words}.`;
}

function refusedWords({ provider, type }: MachineRecord, { providerWords }: ProviderRefusal): string {
  return `${provider} refuses a ${type}: ${sentence(providerWords)}`;
}

function troubleWords({ provider }: MachineRecord, { kind, providerWords }: ProviderRefusal): string {
  if (TOKEN_REFUSALS.includes(kind)) {
    return `${provider} refuses the provider token (${providerWords}): set another one by PATCH \`providerToken\`.`;
  }
  if (kind === "rate_limited") return `${provider} asks to be called less often (${providerWords}); waiting.`;
  return `${provider} cannot be asked just now (${providerWords}); trying again.`;
}
