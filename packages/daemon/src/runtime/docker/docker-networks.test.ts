import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import type { WorkloadSpec } from "@fairlead/protocol/workload";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { openWorkloadNetworks, removeNetworkRules, type WorkloadNetworks } from "../../host/workload-networks.ts";
import { systemTimers } from "../../process/timers.ts";
import type { LoopSnapshot } from "../../reconcile/loop.ts";
import { aDesiredState, anAgent, aSpec } from "../../testing/builders.ts";
import { createOnNetwork } from "../../testing/create-on-network.ts";
import {
  DOCKER_SOCKET,
  type DockerCorner,
  dockerCorner,
  removeAllOf,
  whyNoDocker,
} from "../../testing/docker-engine.ts";
import { silentLog } from "../../testing/silent-log.ts";
import { bridgePrefix } from "./docker-networks.ts";
import { DockerRuntime } from "./docker-runtime.ts";

const SOCKET = process.env["FAIRLEAD_TEST_DOCKER_SOCKET"] ?? DOCKER_SOCKET;
const POOL = "198.19.0.0/16";
/** Simulates a cloud's metadata service on the machine's loopback interface. */
const METADATA = "169.254.169.254";
/** Simulates a host on the internet in another network namespace. */
const OUTSIDE = "203.0.113.9";

const reason = (await whyNoDocker()) ?? (process.getuid?.() === 0 ? null : "network namespaces need root");
const title = reason === null ? "networks on Docker" : `networks on Docker (skipped: ${reason})`;

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

describe.skipIf(reason !== null)(title, () => {
  const owner = { installationId: "ins_test", nodeId: `nod_${randomBytes(6).toString("hex")}` };
  const runtime = new DockerRuntime(SOCKET, POOL);
  const servers: Server[] = [];
  let corner: DockerCorner;
  let networks: WorkloadNetworks;
  let outside: Outside;
  /** A local service that listens on all addresses, and one on loopback only: the platform. */
  let everywhere: number;
  let platform: number;

  const listen = async (address: string, words: string): Promise<number> => {
    const server = createServer((_request, response) => response.end(words)).listen(0, address);
    servers.push(server);
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  };

  beforeAll(async () => {
    corner = await dockerCorner("networks");
    everywhere = await listen("0.0.0.0", "from this machine");
    platform = await listen("127.0.0.1", "from the platform");
    outside = await openOutside();
    networks = openWorkloadNetworks({
      owner,
      workloadSubnets: POOL,
      runtime,
      timers: systemTimers,
      log: silentLog,
      onFinding: () => undefined,
    });
  });
  afterAll(async () => {
    await networks.remove();
    outside.close();
    for (const server of servers) server.close();
    await removeAllOf(corner.docker, owner.nodeId);
    await corner.close();
  });

  const workload = (name: string, internet: boolean): WorkloadSpec => {
    const address = { name: "host.docker.internal", host: "127.0.0.1", port: platform, forwarded: true };
    return anAgent({ workloadId: `agt_${name}`, image: corner.image, network: { internet, platform: address } });
  };

  /** Starts workloads like the daemon. @returns the container IDs. */
  async function run(...workloads: WorkloadSpec[]): Promise<string[]> {
    const desired = aDesiredState({ ...owner, workloads });
    networks.desiredChanged(desired);
    const ids: string[] = [];
    for (const spec of workloads) {
      const name = `fairlead-networks-${randomBytes(4).toString("hex")}`;
      const id = await createOnNetwork(runtime, { spec, name, owner, projectId: "p", generation: 1, secrets: null });
      const all = new Map((await runtime.networks(owner)).map((network) => [network.name, network]));
      const observed = { containers: [], foreign: new Map(), images: new Map(), networks: all };
      networks.observed({ desired, observed, away: null } as unknown as LoopSnapshot);
      await networks.rules.ready();
      await runtime.start(id);
      ids.push(id);
    }
    return ids;
  }

  /** Output of a command in a running container. */
  async function printedBy(id: string, ...command: string[]): Promise<string> {
    const exec = await corner.docker.getContainer(id).exec({ Cmd: ["/bin/busybox", ...command], AttachStdout: true });
    const stream = await exec.start({ Tty: true });
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(Buffer.from(chunk));
    return Buffer.concat(chunks).toString();
  }
  const fetchedBy = (id: string, address: string, port: number): Promise<string> =>
    printedBy(id, "sh", "-c", `printf 'GET /health HTTP/1.0\\r\\n\\r\\n' | /bin/busybox nc -w 1 ${address} ${port}`);
  const addressOf = async (id: string): Promise<string> => {
    const { NetworkSettings } = await corner.docker.getContainer(id).inspect();
    return Object.values(NetworkSettings.Networks)[0]?.IPAddress ?? "";
  };

  test("a workload reaches the platform through the daemon, and no other workload, machine service or cloud metadata", async () => {
    const [one = "", two = ""] = await run(workload("one", true), workload("two", true));
    await vi.waitFor(async () => {
      expect(await fetchedBy(one, "host.docker.internal", platform)).toContain("from the platform");
    }, 10_000);
    const gatewayOf = async (id: string): Promise<string> => {
      const { NetworkSettings } = await corner.docker.getContainer(id).inspect();
      return Object.values(NetworkSettings.Networks)[0]?.Gateway ?? "";
    };
    const engine = await runtime.inspect(two);
    expect((await fetch(`http://127.0.0.1:${engine?.hostPort}/health`)).status).toBe(200);
    expect(await fetchedBy(one, "127.0.0.1", 8080)).toContain("ok");

    const gateways = (await runtime.networks(owner)).map(({ gateway }) => gateway);
    const machine = Object.values(networkInterfaces()).flatMap((own = []) => own.map(({ address }) => address));
    const addresses = [...gateways, ...machine.filter((address) => address.includes(".") && address !== "127.0.0.1")];
    const attempts: [string, number][] = [
      [await addressOf(two), 8080],
      [METADATA, OUTSIDE_PORT],
      ...addresses.map((address): [string, number] => [address, everywhere]),
      ...addresses.map((address): [string, number] => [address, engine?.hostPort ?? 0]),
      // The platform address of the other workload.
      [await gatewayOf(two), platform],
    ];
    const reached = await Promise.all(attempts.map(([address, port]) => fetchedBy(one, address, port)));
    expect(reached.filter((text) => text.includes("HTTP/1."))).toEqual([]);
    expect(await fetchedBy(one, OUTSIDE, OUTSIDE_PORT)).toContain("from outside");
  });

  test("without internet a workload reaches only the platform, resolves no names, and can be reached", async () => {
    const [id = ""] = await run(workload("offline", false));
    await vi.waitFor(async () => {
      expect(await fetchedBy(id, "host.docker.internal", platform)).toContain("from the platform");
    }, 10_000);
    expect(await fetchedBy(id, OUTSIDE, OUTSIDE_PORT)).toBe("");
    const container = await runtime.inspect(id);
    expect((await fetch(`http://127.0.0.1:${container?.hostPort}/health`)).status).toBe(200);
    expect((await corner.docker.getContainer(id).inspect()).HostConfig.Dns).toEqual(["127.0.0.1"]);
  });

  test("a workload has no IPv6 address, and cannot reach one", async () => {
    const [id = ""] = await run(workload("six", true));
    expect(await printedBy(id, "ip", "-6", "address", "show", "dev", "eth0")).not.toContain("inet6");
    expect(await printedBy(id, "ip", "-6", "route")).not.toContain("fd00");
    expect(await printedBy(id, "sh", "-c", "/bin/busybox nc -w 1 fd00:ec2::254 80 2>&1")).toMatch(
      /unreachable|assign|not support|bad address/i,
    );
  });

  test("a workload that names no platform cannot reach it, and /tmp has a size limit", async () => {
    const spec = aSpec({ image: corner.image, resources: { tmpMb: 3 } });
    const [id = ""] = await run(spec);
    expect(await printedBy(id, "cat", "/etc/hosts")).not.toContain("host.docker.internal");
    const [network] = (await runtime.networks(owner)).filter(({ workloadId }) => workloadId === spec.workloadId);
    expect(await fetchedBy(id, network?.gateway ?? "", platform)).toBe("");
    expect(await printedBy(id, "df", "-m", "/tmp")).toMatch(/\s3\s+0\s+3\s/);
  });

  test("rules that a firewall removed are restored, and are removed with the node", async () => {
    const prefix = bridgePrefix(owner, true);
    const rules = (): string =>
      execFileSync("iptables", ["-t", "mangle", "-S"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    await run(workload("again", true));
    execFileSync("iptables", ["-t", "mangle", "-D", "PREROUTING", "-i", `${prefix}+`, "-j", `FAIRLEAD-${prefix}`]);
    expect(rules()).not.toContain(`-A PREROUTING -i ${prefix}+`);
    networks.observed({ desired: aDesiredState(), observed: null, away: "away" } as unknown as LoopSnapshot);
    networks.observed({ desired: aDesiredState(), observed: null, away: null } as unknown as LoopSnapshot);
    await vi.waitFor(() => expect(rules()).toContain(`-A PREROUTING -i ${prefix}+ -j FAIRLEAD-${prefix}`), 10_000);
    expect(rules()).toContain(`-A FAIRLEAD-${prefix} -d 169.254.0.0/16 -j DROP`);
    await networks.close();
    await removeNetworkRules(runtime, owner);
    expect(rules()).not.toContain(prefix);
  });
});

const OUTSIDE_PORT = 8000;

interface Outside {
  close(): void;
}

/** An external host with a public address and the metadata address; this machine routes to both. */
async function openOutside(): Promise<Outside> {
  const name = `flo${process.pid}`;
  const ip = (...args: string[]): unknown => execFileSync("ip", args);
  ip("netns", "add", name);
  ip("link", "add", `${name}a`, "type", "veth", "peer", "name", `${name}b`, "netns", name);
  ip("address", "add", "203.0.113.1/24", "dev", `${name}a`);
  ip("link", "set", `${name}a`, "up");
  ip("-n", name, "address", "add", `${OUTSIDE}/24`, "dev", `${name}b`);
  ip("-n", name, "address", "add", `${METADATA}/32`, "dev", `${name}b`);
  ip("-n", name, "link", "set", `${name}b`, "up");
  ip("-n", name, "route", "add", "default", "via", "203.0.113.1");
  ip("route", "add", `${METADATA}/32`, "via", OUTSIDE);
  const program = `require("node:http").createServer((_, r) => r.end("from outside")).listen(${OUTSIDE_PORT})`;
  const server = spawn("nsenter", [`--net=/var/run/netns/${name}`, process.execPath, "-e", program], {
    stdio: "ignore",
  });
  for (const address of [OUTSIDE, METADATA]) {
    await vi.waitFor(async () => expect((await fetch(`http://${address}:${OUTSIDE_PORT}`)).status).toBe(200), 10_000);
  }
  return {
    close: () => {
      server.kill("SIGKILL");
      ip("link", "delete", `${name}a`);
      ip("netns", "delete", name);
    },
  };
}
