/** The interface to machine providers (docs/provisioning.md). Every adapter passes `machine-provider.contract.ts`. */

/** Exact decimal in the provider's currency, without tax. */
export interface Price {
  readonly amount: string;
  readonly currency: string;
}

export interface PlanLocation {
  readonly name: string;
  /** According to the provider; a create may still fail with `no_capacity`. */
  readonly available: boolean;
  /** Null if it is free or the price is unknown. */
  readonly monthlyPrice: Price | null;
  readonly hourlyPrice: Price | null;
}

export interface MachinePlan {
  /** The provider's machine type: the part of a `planId` after the colon. */
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
  /** Our request ID; "" on a machine that carries the installation's label without one. */
  readonly label: string;
  readonly state: MachineState;
  /** Null until assigned. */
  readonly ip: string | null;
  readonly location: string;
  /** Unix milliseconds. */
  readonly createdAt: number;
  /** The provider's message if creation failed after it was accepted. */
  readonly failure: string | null;
}

export interface MachineRequest {
  /** Our request ID, to find the machine again after a lost response. */
  readonly label: string;
  /** RFC 1123, at most 63 characters, identical for every attempt of a request. */
  readonly name: string;
  readonly type: string;
  readonly location: string;
  /** Script that the machine runs on its first boot. */
  readonly userData: string;
}

/** Bound to one installation: labels what it creates, and finds only machines with that label. */
export interface MachineProvider {
  /** The part of a `planId` before the colon. */
  readonly name: string;
  /** Whether `providerToken` is required; otherwise every call gets "". */
  readonly needsToken: boolean;
  /** Size of `userData` in UTF-8. */
  readonly maxUserDataBytes: number;
  /** Changes nothing. @throws ProviderRefusal `bad_token`, `read_only_token` or `wrong_project` */
  checkToken(token: string): Promise<void>;
  /** @param token null: only what the provider publishes without one. @throws ProviderRefusal */
  plans(token: string | null): Promise<readonly MachinePlan[]>;
  /**
   * One attempt. After `unavailable`, or an error other than ProviderRefusal, a machine may exist.
   * @throws ProviderRefusal `already_exists` if a machine of that name exists
   */
  create(token: string, request: MachineRequest): Promise<Machine>;
  /** Null only if the provider returns 404. @throws ProviderRefusal */
  get(token: string, machineId: string): Promise<Machine | null>;
  /** Requests deletion; succeeds if the machine is already gone. `get` shows when it is deleted. @throws ProviderRefusal */
  delete(token: string, machineId: string): Promise<void>;
  /** Reads all pages. @param label our request ID; null: all of this installation. @throws ProviderRefusal */
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
  /** The provider removed an API that this version calls. */
  | "outdated"
  | "unavailable";

export interface RefusalDetails {
  readonly kind: RefusalKind;
  /** The provider's message, for the user. Never the token. */
  readonly providerWords: string;
  /** From the response headers; null if they do not say. */
  readonly retryAfterMs?: number | null;
}

/** A provider's error, classified the same way for all providers. */
export class ProviderRefusal extends Error {
  override readonly name = "ProviderRefusal";
  readonly kind: RefusalKind;
  readonly providerWords: string;
  readonly retryAfterMs: number | null;

  constructor({ kind, providerWords, retryAfterMs = null }: RefusalDetails, options?: ErrorOptions) {
    super(`${kind}: ${providerWords}`, options);
    this.kind = kind;
    this.providerWords = providerWords;
    this.retryAfterMs = retryAfterMs;
  }
}
