import type { Health, Resources, Volume } from "@fairlead/protocol/engine-config";
import { OPENCLAW_START } from "../nodes/openclaw-start.ts";

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
  /** Under what every agent is told (design §10) and what the config sets. */
  readonly env: Readonly<Record<string, string>>;
  readonly port: number;
  readonly health: Health;
  /** Where it keeps what it must not lose, each agent for itself; a config's own volumes take their place. */
  readonly volumes: (agentId: string) => readonly Volume[];
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
  env: {},
  port: 8080,
  health,
  volumes: () => [],
  resources: {},
  secrets: [],
  update: "stop-first",
};

const PRESETS: ReadonlyMap<string, GuestPreset> = new Map<string, GuestPreset>([
  ["fairlead-demo-agent", { ...BASE, image: "fairlead/demo-agent:1", resources: { memoryMb: 256, pids: 64 } }],
  // ghcr.io/openclaw/openclaw as its docs/install/docker.md has it: Node runs `openclaw.mjs` in /app, as `node`, at home in /home/node.
  [
    "openclaw",
    {
      ...BASE,
      image: "ghcr.io/openclaw/openclaw:latest",
      args: ["node", "--input-type=module", "--eval", OPENCLAW_START],
      env: { HOME: "/home/node" },
      port: 18_789,
      // 12 s on an idle machine of two cores; its first start after an update also brings its store up to date.
      health: { ...health, startPeriodSeconds: 600 },
      // What it is and remembers. Its user's whole home: a folder that the image does not have would belong to root.
      volumes: (agentId) => [{ name: `openclaw-${agentId.slice(-26).toLowerCase()}`, mountPath: "/home/node" }],
      secrets: [{ name: "OPENCLAW_GATEWAY_TOKEN", as: "env" }],
    },
  ],
]);

/** The preset of that name, or what an image brings that nothing is known of. */
export function guestPreset(guest: string): GuestPreset {
  return PRESETS.get(guest) ?? { ...BASE, image: guest };
}
