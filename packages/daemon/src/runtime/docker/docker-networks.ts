import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import type Docker from "dockerode";
import { z } from "zod";
import { type Network, type NetworkPlan, type Owner, RuntimeError } from "../container-runtime.ts";
import { LABELS, ownerFilter } from "../ownership.ts";
import { freeSubnet, routedSubnets } from "../subnets.ts";

/** Workload networks on Docker. */

const networkSchema = z.object({
  Id: z.string(),
  Name: z.string(),
  Labels: z.record(z.string(), z.string()).nullish(),
  IPAM: z.object({
    Config: z.array(z.object({ Gateway: z.string().optional(), Subnet: z.string().optional() })).nullish(),
  }),
});
type Inspected = z.infer<typeof networkSchema>;

export async function listNetworks(docker: Docker, owner: Owner, abortSignal: AbortSignal): Promise<Network[]> {
  const filters = JSON.stringify({ label: ownerFilter(owner) });
  const answer = z.array(networkSchema).parse(await docker.listNetworks({ filters, abortSignal }));
  return answer.map(networkOf);
}

export async function findNetwork(docker: Docker, name: string): Promise<Network> {
  return networkOf(networkSchema.parse(await docker.getNetwork(name).inspect()));
}

/** Docker does not reject duplicate network names by default. */
export async function createNetwork(
  docker: Docker,
  { pool, ...plan }: NetworkPlan & { readonly pool: string },
  abortSignal: AbortSignal,
): Promise<void> {
  const there = z.array(networkSchema).parse(await docker.listNetworks({ abortSignal }));
  if (there.some(({ Name }) => Name === plan.name)) return;
  const taken = there.flatMap(({ IPAM }) => (IPAM.Config ?? []).flatMap(({ Subnet }) => Subnet ?? []));
  const free = freeSubnet(pool, [...taken, ...(await readRoutes())]);
  if (free === null) {
    const advice = "set FAIRLEAD_DAEMON_WORKLOAD_SUBNETS to an unused address range";
    throw new RuntimeError("no-room", `no free subnet in ${pool}: ${advice}`);
  }
  await docker.createNetwork({
    Name: plan.name,
    CheckDuplicate: true,
    Driver: "bridge",
    // No IPv6: IPv6-only destinations cannot be reached.
    EnableIPv6: false,
    IPAM: { Driver: "default", Config: [{ Subnet: free.subnet, Gateway: free.gateway }] },
    Options: {
      "com.docker.network.bridge.name": bridgeName(plan),
      // Even without the packet filter rules, responses would not be routed back.
      "com.docker.network.bridge.enable_ip_masquerade": String(plan.internet),
    },
    Labels: {
      [LABELS.installation]: plan.owner.installationId,
      [LABELS.node]: plan.owner.nodeId,
      [LABELS.workload]: plan.workloadId,
    },
    abortSignal,
  } as Docker.NetworkCreateOptions);
}

/** Prefix of the node's bridge names, for packet filter rules: 8 of at most 15 characters. */
export function bridgePrefix({ nodeId }: Owner, internet: boolean): string {
  return `fl${internet ? "w" : "x"}${hashOf(nodeId, 5)}`;
}

function bridgeName({ owner, name, internet }: NetworkPlan): string {
  return `${bridgePrefix(owner, internet)}${hashOf(`${owner.nodeId} ${name}`, 7)}`;
}

function hashOf(text: string, length: number): string {
  return createHash("sha256").update(text).digest("hex").slice(0, length);
}

function networkOf({ Id, Name, Labels, IPAM }: Inspected): Network {
  const { Gateway = "", Subnet = "" } = IPAM.Config?.[0] ?? {};
  return { id: Id, name: Name, workloadId: Labels?.[LABELS.workload] ?? "", gateway: Gateway, subnet: Subnet };
}

async function readRoutes(): Promise<string[]> {
  return routedSubnets(await readFile("/proc/net/route", "utf8").catch(() => ""));
}
