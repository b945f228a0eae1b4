import { type BackoffOptions, ceiling } from "@fairlead/protocol/values/backoff";
import type { Clock } from "@fairlead/protocol/values/clock";
import type { Kysely } from "kysely";
import type { Logger } from "pino";
import { UnsealError } from "../../../access/auth/sealing/sealer.ts";
import type { Database } from "../../../installation/db/tables/schema.ts";
import type { HeldNode, NodeMachineService } from "../../nodes/actions/node-machine-service.ts";
import type { NodeRecord } from "../../nodes/node.ts";
import { type MachineRecord, type MachineStep, planIdOf } from "../machine.ts";
import { type Machine, type MachineProvider, ProviderRefusal, type RefusalKind } from "../machine-provider.ts";
import type { MachineSecrets } from "../machine-secrets.ts";
import type { MachineChanges, MachineStore } from "../machine-store.ts";
import { outdatedWords } from "../provider-refused.ts";
import type { ProvisioningOptions } from "./provisioning-settings.ts";
import { renderUserData } from "./user-data.ts";

export interface ProvisioningDeps {
  readonly machines: MachineStore;
  /** In the caller's transaction. */
  readonly machinesOn: (transaction: Kysely<Database>) => MachineStore;
  readonly nodes: NodeMachineService;
  readonly providers: ReadonlyMap<string, MachineProvider>;
  readonly secrets: MachineSecrets;
  readonly clock: Clock;
  readonly log: Logger;
  readonly publicUrl: string;
  readonly options: ProvisioningOptions;
}

/** The inputs of one step. */
interface Turn {
  readonly record: MachineRecord;
  readonly node: NodeRecord;
  readonly provider: MachineProvider;
  readonly token: string;
}

/** How long a provider's list may lag behind accepted orders. */
const LIST_LAG_MS = 60_000;
/** Minimum remaining lifetime of a bootstrap token for a new machine. */
const BOOTSTRAP_LEFT_MS = 10 * 60_000;
const RETRY: BackoffOptions = { baseMs: 2000, maxMs: 60_000 };
const TOKEN_RETRY_MS = 30_000;

const TOKEN_REFUSALS: readonly RefusalKind[] = ["bad_token", "read_only_token", "wrong_project"];
const FINAL_REFUSALS: readonly RefusalKind[] = ["bad_input", "quota", "outdated"];

/**
 * Takes each rented machine from order to enrollment and to its removal. Each call does one step: decisions are stored before the provider
 * is called, so a crash at any point is safe. One call at a time per node.
 */
export class ProvisioningService {
  readonly #deps: ProvisioningDeps;
  readonly #troubles = new Map<string, { words: string; count: number }>();

  constructor(deps: ProvisioningDeps) {
    this.#deps = deps;
  }

  /** @returns milliseconds until the next step; null if there is nothing left to do. */
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

  /** Searches before ordering again, because a response may have been lost. */
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
      // The provider confirmed that there is none.
      await this.#changeStep(ready.record, { attemptedAt: turn.record.attemptedAt });
      if (error.kind === "no_capacity") return this.#elsewhere(turn, error.providerWords);
      if (FINAL_REFUSALS.includes(error.kind)) return this.#fail(turn, refusedWords(turn.record, error));
      throw error;
    }
  }

  /** Stores the bootstrap token and the attempt. @returns null if the step has changed. */
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
        await node.tell("machine_requested", `Requesting a ${record.type} in ${location} from ${record.provider}.`);
      }
    });
    return written ? { record: { ...record, ...changes }, bootstrapToken } : null;
  }

  /** Even while the node is being deleted, so that the removal knows the machine. */
  async #accept(record: MachineRecord, { id: machineId, location }: Machine): Promise<number> {
    const { nodes, machinesOn } = this.#deps;
    await nodes.hold(record.nodeId, async (transaction, node) => {
      const machines = machinesOn(transaction);
      const current = await machines.find(record.nodeId);
      const ordering = current?.step === "ordering";
      await machines.update(record.nodeId, { machineId, attemptedAt: null, ...(ordering ? { step: "booting" } : {}) });
      const message = `${record.provider} accepted the order: machine ${machineId} in ${location} is starting.`;
      if (ordering) await node.tell("machine_accepted", message);
    });
    return 0;
  }

  async #boot(turn: Turn): Promise<number | null> {
    const { record, node, provider, token } = turn;
    const enrolled = node.enrolledAt !== null;
    const machine = await provider.get(token, record.machineId ?? "");
    if (machine === null || machine.state === "gone" || machine.state === "failed") {
      const words = machine?.failure ?? "it no longer exists";
      return this.#elsewhere(
        turn,
        `${record.provider} accepted the order for machine ${record.machineId}, but: ${words}`,
      );
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
      const reason = `The machine is running at ${ip} and installing its daemon.`;
      if (node.record.enrolledAt === null) await node.apply("bootstrap_token_issued", reason);
    });
  }

  /** The provider's address takes precedence over the one used at enrollment. */
  async #serve(record: MachineRecord, ip: string | null): Promise<number | null> {
    const changes = { step: "serving", sealedBootstrap: null, bootstrapExpiresAt: null } as const;
    await this.#write(record, changes, async (node) => {
      if (ip !== null) await node.setPublicIp(ip);
    });
    return this.#over(record.nodeId);
  }

  /** Tries the next location, or fails. */
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

  /** Removes what may exist, so that no machine is left behind. */
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
      if (failed) await node.tell("machine_removed", `${record.provider} no longer has a machine for this node.`);
    });
    return 0;
  }

  async #remove(turn: Turn): Promise<number | null> {
    if (!(await this.#isCleared(turn))) return this.#deps.options.pollMs;
    await this.#deps.nodes.hold(turn.record.nodeId, (_transaction, node) => node.forget());
    return this.#over(turn.record.nodeId);
  }

  /** Requests removal of what exists. @returns whether the provider confirms that nothing exists. */
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

  /** Stores one decision in one transaction. @returns false if it was superseded. */
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
    if (!(error instanceof ProviderRefusal)) this.#deps.log.warn({ err: error, nodeId }, "a provisioning step failed");
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

  /** An unresponsive provider also ends the wait at the deadline. */
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
    return `${this.#tooLate()} Last status: ${node.statusMessage}`;
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

/** Errors after which a machine may exist. */
function isOpen({ kind }: ProviderRefusal): boolean {
  return kind === "unavailable" || kind === "already_exists";
}

function notOffered(provider: string): ProviderRefusal {
  return new ProviderRefusal({ kind: "unavailable", providerWords: `this server no longer offers ${provider}` });
}

function asRefusal(error: unknown): ProviderRefusal {
  if (error instanceof ProviderRefusal) return error;
  if (error instanceof UnsealError) {
    return new ProviderRefusal({ kind: "bad_token", providerWords: "it was sealed with another master key" });
  }
  return new ProviderRefusal({ kind: "unavailable", providerWords: "its response could not be read" });
}

function sentence(words: string): string {
  return /[.!?]$/.test(words) ? words : `${words}.`;
}

function refusedWords({ provider, type }: MachineRecord, { kind, providerWords }: ProviderRefusal): string {
  if (kind === "outdated") return sentence(outdatedWords(provider, providerWords));
  return `${provider} rejected the order of a ${type}: ${sentence(providerWords)}`;
}

function troubleWords({ provider }: MachineRecord, { kind, providerWords }: ProviderRefusal): string {
  if (TOKEN_REFUSALS.includes(kind)) {
    return `${provider} rejected the provider token (${providerWords}). Set a new one: PATCH \`providerToken\`.`;
  }
  if (kind === "outdated") return sentence(outdatedWords(provider, providerWords));
  if (kind === "rate_limited") return `${provider} limits the rate of calls (${providerWords}). Waiting.`;
  return `${provider} is unavailable (${providerWords}). Retrying.`;
}
