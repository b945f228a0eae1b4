import type { Health, Resources, Volume } from "@fairlead/protocol/engine-config";
import { OPENCLAW_START } from "../../nodes/desired/openclaw-start.ts";

/** A secret that a guest requires, in addition to those of its connectors. */
export interface GuestSecret {
  readonly name: string;
  readonly as: "file" | "env";
}

/** Defaults for a guest, used where the agent's config omits them. */
export interface GuestPreset {
  readonly image: string;
  readonly command: readonly string[];
  readonly args: readonly string[];
  /** Overridden by the variables of every agent (docs/agents.md) and by the config. */
  readonly env: Readonly<Record<string, string>>;
  readonly port: number;
  readonly health: Health;
  /** Persistent data, separate for each agent; a config's own volumes replace these. */
  readonly volumes: (agentId: string) => readonly Volume[];
  /** Overridden by the config, field by field. */
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

/** Stop-first, because two copies of an agent would act twice. */
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
  // ghcr.io/openclaw/openclaw as in its docs/install/docker.md: Node runs `openclaw.mjs` in /app as user `node`, whose
  // home is /home/node.
  [
    "openclaw",
    {
      ...BASE,
      image: "ghcr.io/openclaw/openclaw:latest",
      args: ["node", "--input-type=module", "--eval", OPENCLAW_START],
      env: { HOME: "/home/node" },
      port: 18_789,
      // 12 s on an idle machine with two cores; the first start after an update also migrates its store.
      health: { ...health, startPeriodSeconds: 600 },
      // Identity and memory. The whole home folder, because a folder missing in the image would belong to root.
      volumes: (agentId) => [{ name: `openclaw-${agentId.slice(-26).toLowerCase()}`, mountPath: "/home/node" }],
      secrets: [{ name: "OPENCLAW_GATEWAY_TOKEN", as: "env" }],
    },
  ],
]);

/** The preset of that name, or defaults for unknown images. */
export function guestPreset(guest: string): GuestPreset {
  return PRESETS.get(guest) ?? { ...BASE, image: guest };
}
