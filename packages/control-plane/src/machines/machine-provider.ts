/** The seam to whoever rents out machines (design §6, Provisioning). Every adapter passes `machine-provider.contract.ts`. */

/** An exact decimal in the provider's currency, without tax. */
export interface Price {
  readonly amount: string;
  readonly currency: string;
}

export interface PlanLocation {
  readonly name: string;
  /** As the provider says now; a create may still be refused with `no_capacity`. */
  readonly available: boolean;
  /** Null where the provider asks for no money, or its prices are not known. */
  readonly monthlyPrice: Price | null;
  readonly hourlyPrice: Price | null;
}

export interface MachinePlan {
  /** The provider's name of the machine type: the part of a `planId` behind the colon. */
  readonly type: string;
  readonly cores: number;
  readonly memoryMb: number;
  readonly diskGb: number;
  readonly gpu: { readonly model: string; readonly count: number } | null;
  readonly locations: readonly PlanLocation[];
}

export type MachineState = "pending" | "running" | "failed" | "stopping" | "gone";

export interface Machine {
  readonly id: string;
  /** Our request id; "" on one that carries the installation's label without it. */
  readonly label: string;
  readonly state: MachineState;
  /** Null until the provider has given it one. */
  readonly ip: string | null;
  readonly location: string;
  /** Unix milliseconds. */
  readonly createdAt: number;
  /** The provider's own words about what went wrong with it after it was accepted. */
  readonly failure: string | null;
}

export interface MachineRequest {
  /** Our request id: whoever looks for it finds the machine again, also after a lost answer. */
  readonly label: string;
  /** RFC 1123, at most 63 characters, the same for every attempt of one request. */
  readonly name: string;
  readonly type: string;
  readonly location: string;
  /** What the machine runs at its first start. */
  readonly userData: string;
}

/** Made for one installation: whatever it creates carries the installation's label, and it finds nothing else. */
export interface MachineProvider {
  /** The part of a `planId` before the colon. */
  readonly name: string;
  /** Whether `providerToken` is needed; where not, "" is handed to every call. */
  readonly needsToken: boolean;
  /** Of `userData`, in UTF-8. */
  readonly maxUserDataBytes: number;
  /** Changes nothing. @throws ProviderRefusal `bad_token`, `read_only_token` or `wrong_project` */
  checkToken(token: string): Promise<void>;
  /** @param token null: only what the provider tells everybody. @throws ProviderRefusal */
  plans(token: string | null): Promise<readonly MachinePlan[]>;
  /**
   * One attempt. What it throws besides a ProviderRefusal, and `unavailable`, leave open whether there is a machine now.
   * @throws ProviderRefusal `already_exists` where a machine of that name is there
   */
  create(token: string, request: MachineRequest): Promise<Machine>;
  /** Null by the provider's own word (404) alone. @throws ProviderRefusal */
  get(token: string, machineId: string): Promise<Machine | null>;
  /** Asks for its end, and is done when it is gone already; `get` tells when it is. @throws ProviderRefusal */
  delete(token: string, machineId: string): Promise<void>;
  /** Every page of them. @param label our request id; null: all of this installation. @throws ProviderRefusal */
  findByLabel(token: string, label: string | null): Promise<readonly Machine[]>;
}

export type RefusalKind =
  | "bad_token"
  | "read_only_token"
  | "wrong_project"
  | "no_capacity"
  | "bad_input"
  | "quota"
  | "already_exists"
  | "rate_limited"
  | "unavailable";

export interface Refusal {
  readonly kind: RefusalKind;
  /** What it answered, for the person who asked. Never the token. */
  readonly providerWords: string;
  /** By its own headers; null where it says nothing. */
  readonly retryAfterMs?: number | null;
}

/** What a provider's "no" means, the same for each of them. */
export class ProviderRefusal extends Error {
  override readonly name = "ProviderRefusal";
  readonly kind: RefusalKind;
  readonly providerWords: string;
  readonly retryAfterMs: number | null;

  constructor({ kind, providerWords, retryAfterMs = null }: Refusal, options?: ErrorOptions) {
    super(`${kind}: ${providerWords}`, options);
    this.kind = kind;
    this.providerWords = providerWords;
    this.retryAfterMs = retryAfterMs;
  }
}
