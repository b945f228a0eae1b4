import { isIPv4 } from "node:net";
import type { DesiredState } from "@fairlead/protocol/workload";
import { type DaemonLog, reasonOf } from "../process/log.ts";
import type { Timers } from "../process/timers.ts";
import { RuntimeError } from "../runtime/container-runtime.ts";
import { type ConditionFinding, OK } from "./condition-rules.ts";
import { installScript, type RuleFacts, removeScript } from "./workload-rules.ts";

export interface NetworkGuardDeps {
  readonly facts: Pick<RuleFacts, "bridges" | "pool">;
  /** Runs a script with permission to change this machine's network. @throws RuntimeError */
  readonly run: (script: string) => Promise<unknown>;
  readonly machine: MachineNetwork;
  readonly timers: Timers;
  readonly log: DaemonLog;
  readonly onFinding: (finding: ConditionFinding) => void;
}

/** Facts about this machine's network. */
export interface MachineNetwork {
  /** IPv4 addresses of its interfaces. */
  readonly addresses: () => readonly string[];
  /** IPv4 addresses of its name servers. */
  readonly nameServers: () => Promise<readonly string[]>;
  /** The IPv4 addresses of a name; none if it cannot be resolved. */
  readonly resolve: (host: string) => Promise<readonly string[]>;
}

/** Reloading a firewall removes the rules. */
const AGAIN_MS = 5 * 60_000;
const RETRY_MS = 30_000;

/** Keeps the rules for workload networks installed. No container starts without them. */
export class NetworkGuard {
  readonly #deps: NetworkGuardDeps;
  #desired: DesiredState | null = null;
  /** The installed rules; null if none are known to be. */
  #installed: string | null = null;
  #running: Promise<void> = Promise.resolve();
  #cancel: () => void = () => undefined;
  #closed = false;

  constructor(deps: NetworkGuardDeps) {
    this.#deps = deps;
  }

  /** New forwarded ports are installed before the next container starts. */
  desiredChanged(desired: DesiredState): void {
    this.#desired = desired;
  }

  /** @throws RuntimeError if the rules cannot be installed. */
  async ready(): Promise<void> {
    const script = await this.#script();
    if (script === this.#installed) return;
    await this.#install();
  }

  /** The container engine is back; the packet filter may have been reset. */
  renew(): void {
    this.#cancel();
    void this.#install().catch(() => undefined);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel();
    await this.#running.catch(() => undefined);
  }

  /** The node and its networks were removed. */
  async remove(): Promise<void> {
    await this.close();
    await this.#deps.run(removeScript(this.#deps.facts.bridges));
  }

  /** One installation at a time. */
  #install(): Promise<void> {
    const next = this.#running.catch(() => undefined).then(() => this.#attempt());
    this.#running = next;
    return next;
  }

  async #attempt(): Promise<void> {
    if (this.#closed) return;
    const { run, log, onFinding, timers } = this.#deps;
    this.#cancel();
    try {
      const script = await this.#script();
      await run(script);
      this.#installed = script;
      onFinding(OK);
    } catch (error) {
      this.#installed = null;
      const message = `cannot install the rules for workload networks: ${reasonOf(error)}`;
      log.warn({ reason: reasonOf(error) }, "cannot install the rules for workload networks");
      onFinding({ status: "problem", reason: "no_network_rules", message });
      throw new RuntimeError("unavailable", message, { cause: error });
    } finally {
      const delay = this.#installed === null ? RETRY_MS : AGAIN_MS;
      if (!this.#closed) this.#cancel = timers.after(delay, () => this.renew());
    }
  }

  async #script(): Promise<string> {
    const { facts, machine } = this.#deps;
    const platforms = (this.#desired?.workloads ?? []).flatMap(({ network }) => network.platform ?? []);
    const [forwarded, direct] = [true, false].map((which) => platforms.filter((one) => one.forwarded === which));
    const own = new Set(machine.addresses());
    const platform = new Map<string, { address: string; port: number }>();
    for (const { host, port } of direct ?? []) {
      const addresses = isIPv4(host) ? [host] : await machine.resolve(host);
      for (const address of addresses) if (own.has(address)) platform.set(`${address} ${port}`, { address, port });
    }
    return installScript({
      ...facts,
      forwardedPorts: [...new Set((forwarded ?? []).map(({ port }) => port))].toSorted((a, b) => a - b),
      platform: [...platform.values()],
      nameServers: [...(await machine.nameServers())].toSorted(),
    });
  }
}
