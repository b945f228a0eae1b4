import type { Health, Resources, Volume } from "@fairlead/protocol/engine-config";

/** What an agent's environment is made of. */
export interface GuestFacts {
  readonly port: number;
  /** The inference host as the agent's container reaches it, without `/v1`. */
  readonly modelsUrl: string;
}

/** A secret that a guest cannot run without, besides those of its connectors. */
export interface GuestSecret {
  readonly name: string;
  readonly as: "file" | "env";
}

/** What a guest brings where the agent's config leaves it out. */
export interface GuestPreset {
  readonly image: string;
  readonly command: readonly string[];
  readonly args: readonly string[];
  /** Under what the config sets. */
  readonly env: (facts: GuestFacts) => Readonly<Record<string, string>>;
  readonly port: number;
  readonly health: Health;
  /** Where it keeps what it must not lose; a config's own volumes take their place. */
  readonly volumes: readonly Volume[];
  /** Under what the config sets, one by one. */
  readonly resources: Resources;
  readonly secrets: readonly GuestSecret[];
  readonly update: "start-first" | "stop-first";
}

const health: Health = {
  path: "/healthz",
  intervalSeconds: 5,
  timeoutSeconds: 3,
  startPeriodSeconds: 120,
  failureThreshold: 3,
  probe: "http",
};

/** Stop-first: two copies of an agent would act twice. */
const BASE: Omit<GuestPreset, "image"> = {
  command: [],
  args: [],
  env: () => ({}),
  port: 8080,
  health,
  volumes: [],
  resources: {},
  secrets: [],
  update: "stop-first",
};

const PRESETS: ReadonlyMap<string, GuestPreset> = new Map<string, GuestPreset>([
  ["fairlead-demo-agent", { ...BASE, image: "fairlead/demo-agent:1", resources: { memoryMb: 256, pids: 64 } }],
  [
    "openclaw",
    {
      ...BASE,
      image: "ghcr.io/openclaw/openclaw:latest",
      args: ["node", "openclaw.mjs", "gateway", "--allow-unconfigured", "--bind", "lan"],
      env: ({ port }) => ({ HOME: "/home/node", OPENCLAW_GATEWAY_PORT: String(port) }),
      port: 18_789,
      volumes: [{ name: "openclaw", mountPath: "/home/node" }],
      secrets: [{ name: "OPENCLAW_GATEWAY_TOKEN", as: "env" }],
    },
  ],
]);

/** The preset of that name, or what an image brings that nothing is known of. */
export function guestPreset(guest: string): GuestPreset {
  return PRESETS.get(guest) ?? { ...BASE, image: guest };
}
