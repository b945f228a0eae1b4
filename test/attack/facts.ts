import type { SimulatedNode } from "../support/simulated-daemon.ts";

/** What the processes of a run know of the server and its tenants. All of it is JSON. */

export interface StageNode extends SimulatedNode {
  readonly id: string;
  /** By which its models are called. */
  readonly identifier: string;
}

export interface Tenant {
  /** Of the person who owns the project. */
  readonly token: string;
  readonly projectId: string;
  readonly key: string;
}

export interface Owner extends Tenant {
  readonly node: StageNode;
}

/** Of several nodes, since what one of them may do is bounded by its own share. */
export interface FleetOwner extends Tenant {
  readonly nodes: readonly StageNode[];
}

export interface Ports {
  /** Of the honest upstream, which counts tokens. */
  readonly honest: number;
  readonly hostileUpstream: number;
  readonly hostileEngine: number;
  readonly hostileIssuer: number;
}

export interface Facts {
  readonly platformUrl: string;
  readonly modelsUrl: string;
  readonly ports: Ports;
  /** Its node serves calls; `reconnecting` connect over and over. */
  readonly honest: Owner & { readonly reconnecting: readonly StageNode[] };
  /** Everybody else is one person, with one project for each kind of attack. */
  readonly hostile: {
    readonly link: FleetOwner;
    readonly tunnel: FleetOwner;
    readonly engine: Owner;
    readonly upstream: Tenant;
    readonly callers: readonly Tenant[];
    /** Makes keys with budgets, and spends them. */
    readonly spender: Tenant;
  };
}

/** Of the OIDC provider. */
export const ISSUER_ID = "evil";
/** Providers of the hostile project, each of one dialect. */
export const HOSTILE_PROVIDERS = ["evil-chat", "evil-responses"] as const;
/** The honest platform provider and its models; the second has a price. */
export const HONEST_MODEL = "good/m";
export const PRICED_MODEL = "good/priced";
/** What a simulated daemon says that its engine serves. */
export const NODE_MODEL = "tinychat-6m";
/** Nano-dollars for a million tokens. */
export const PRICES = { input: 3_750_000_000, output: 3_750_000_000 };
