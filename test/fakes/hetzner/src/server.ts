import type { Action } from "./action.ts";
import type { Image, Location, ServerType } from "./catalog.ts";
import type { Faults } from "./faults.ts";
import type { Labels } from "./label-selector.ts";

type Status = "initializing" | "starting" | "running" | "off" | "deleting" | "gone";

export interface ServerParts {
  readonly id: number;
  readonly name: string;
  readonly type: ServerType;
  readonly location: Location;
  readonly image: Image;
  readonly labels: Labels;
  readonly userData: string;
  /** ISO 8601. */
  readonly created: string;
  readonly createAction: Action;
}

const PLACEMENT_FAILED = { code: "resource_unavailable", message: "no host with enough free resources was found" };

/** One server and what it will still go through: each answer that shows it brings it one step on. */
export class Server {
  readonly parts: ServerParts;
  /** What must happen to it after it was accepted. */
  readonly #failsLater: Faults["failLater"]["server"] | null;
  readonly #now: () => string;
  #status: Status = "initializing";
  #untilRunning: number;
  #untilAddress: number;
  #untilSeen: number;
  #untilGone: number;
  #address: string | null = null;
  #bootError: string | null = null;
  #deleteAction: Action | null = null;
  #removed = false;

  constructor(parts: ServerParts, faults: Faults, { failsLater, now }: { failsLater: boolean; now: () => string }) {
    this.parts = parts;
    this.#now = now;
    this.#failsLater = failsLater ? faults.failLater.server : null;
    this.#untilRunning = faults.readsUntilRunning;
    this.#untilAddress = faults.readsUntilAddress;
    this.#untilSeen = faults.listsUntilSeen;
    this.#untilGone = faults.readsUntilGone;
  }

  get status(): Status {
    return this.#status;
  }

  get gone(): boolean {
    return this.#status === "gone";
  }

  get deleting(): boolean {
    return this.#deleteAction !== null;
  }

  booted(address: string): void {
    this.#address = address;
  }

  bootFailed(message: string): void {
    this.#bootError = message;
  }

  delete(action: Action): void {
    this.#status = "deleting";
    this.#deleteAction = action;
  }

  /** Nothing stands behind it any more. */
  removed(): void {
    this.#removed = true;
  }

  /** @returns whether a list knows it already. */
  seenByList(): boolean {
    if (this.#untilSeen === 0) return true;
    this.#untilSeen -= 1;
    return false;
  }

  /** One answer more has shown it. */
  look(): void {
    if (this.#deleteAction !== null) this.#comeToAnEnd(this.#deleteAction);
    else if (this.#status === "initializing" || this.#status === "starting") this.#comeUp();
    else if (this.#untilAddress > 0) this.#untilAddress -= 1;
  }

  #comeUp(): void {
    const { createAction } = this.parts;
    if (this.#untilRunning > 0) {
      this.#untilRunning -= 1;
    } else if (this.#failsLater !== null || this.#bootError !== null) {
      createAction.end(this.#now(), this.#bootError === null ? PLACEMENT_FAILED : failedBoot(this.#bootError));
      this.#status = this.#failsLater === "vanishes" ? "gone" : "off";
    } else if (this.#address !== null) {
      createAction.end(this.#now());
      this.#status = this.#status === "initializing" ? "starting" : "running";
    }
  }

  #comeToAnEnd(action: Action): void {
    this.parts.createAction.end(this.#now());
    if (this.#untilGone > 0) {
      this.#untilGone -= 1;
    } else if (this.#removed) {
      action.end(this.#now());
      this.#status = "gone";
    }
  }

  toJSON(): object {
    const { id, name, type, location, image, labels, created, createAction } = this.parts;
    return {
      id,
      name,
      labels,
      created,
      location,
      image,
      status: this.#status,
      server_type: type,
      public_net: { ipv4: this.#ipv4(), ipv6: this.#ipv6(), floating_ips: [], firewalls: [] },
      private_net: [],
      locked: createAction.running,
      primary_disk_size: type.disk,
      protection: { delete: false, rebuild: false },
      backup_window: null,
      iso: null,
      rescue_enabled: false,
      volumes: [],
      load_balancers: [],
      included_traffic: 21_990_232_555_520,
      ingoing_traffic: null,
      outgoing_traffic: null,
    };
  }

  #ipv4(): object | null {
    if (this.#address === null || this.#untilAddress > 0) return null;
    const name = `static.${this.#address.split(".").toReversed().join(".")}.clients.your-server.de`;
    return { id: this.parts.id, ip: this.#address, blocked: false, dns_ptr: name };
  }

  /** A network, as the provider gives one, of the block for documentation (RFC 3849). */
  #ipv6(): object {
    return { id: this.parts.id, ip: `2001:db8:0:${this.parts.id.toString(16)}::/64`, blocked: false, dns_ptr: [] };
  }
}

function failedBoot(message: string): { readonly code: string; readonly message: string } {
  return { code: "action_failed", message };
}
