import { beforeEach, expect, test } from "vitest";
import { RuntimeError } from "../runtime/container-runtime.ts";
import { aDesiredState, anAgent } from "../testing/builders.ts";
import { eventually, FakeTime } from "../testing/fake-time.ts";
import { silentLog } from "../testing/silent-log.ts";
import type { ConditionFinding } from "./condition-rules.ts";
import { NetworkGuard } from "./network-guard.ts";

let time: FakeTime;
let scripts: string[];
let findings: ConditionFinding[];
let fault: string | null;
let guard: NetworkGuard;

beforeEach(() => {
  time = new FakeTime();
  scripts = [];
  findings = [];
  fault = null;
  guard = new NetworkGuard({
    facts: { bridges: { internet: "flw1", offline: "flx1" }, pool: "198.19.0.0/16" },
    run: async (script) => {
      scripts.push(script);
      if (fault !== null) throw new RuntimeError("rejected", fault);
    },
    machine: {
      addresses: () => ["192.0.2.2", "127.0.0.1"],
      nameServers: async () => [],
      resolve: async (host) => (host === "here.example.org" ? ["192.0.2.2", "198.51.100.1"] : ["198.51.100.2"]),
    },
    timers: time,
    log: silentLog,
    onFinding: (finding) => findings.push(finding),
  });
});

const agentOf = (host: string, forwarded: boolean) =>
  aDesiredState({
    workloads: [anAgent({ network: { internet: true, platform: { name: host, host, port: 8081, forwarded } } })],
  });

test("rules are in place before the first container starts, and are not installed again for the next", async () => {
  await Promise.all([guard.ready(), guard.ready()]);
  const before = scripts.length;
  await guard.ready();
  expect(scripts).toHaveLength(before);
  expect(findings.at(-1)).toMatchObject({ status: "ok" });
});

test("no container starts until rules can be installed: the condition says why, and a retry follows", async () => {
  fault = "iptables: not found";
  await expect(guard.ready()).rejects.toMatchObject({ kind: "unavailable", message: expect.stringContaining(fault) });
  expect(findings.at(-1)).toMatchObject({ status: "problem", reason: "no_network_rules" });
  fault = null;
  await time.advance(30_000);
  await eventually(() => findings.at(-1)?.status === "ok");
  await guard.ready();
});

test("another port of the platform is allowed before the container that needs it starts", async () => {
  await guard.ready();
  guard.desiredChanged(agentOf("127.0.0.1", true));
  await guard.ready();
  expect(scripts.at(-1)).toContain("-p tcp --dport 8081 -j RETURN");
});

test("a platform on this machine is allowed at its own address; one elsewhere needs no rule", async () => {
  guard.desiredChanged(agentOf("here.example.org", false));
  await guard.ready();
  expect(scripts.at(-1)).toContain("-i flw1+ -d 192.0.2.2 -p tcp --dport 8081 -j RETURN");
  expect(scripts.at(-1)).not.toContain("198.51.100.1");
  guard.desiredChanged(agentOf("elsewhere.example.org", false));
  await guard.ready();
  expect(scripts.at(-1)).not.toContain("8081");
});

test("rules are reinstalled periodically, and immediately when the container engine is back, until the end", async () => {
  await guard.ready();
  await time.advance(5 * 60_000);
  await eventually(() => scripts.length === 2);
  guard.renew();
  await eventually(() => scripts.length === 3);
  await guard.remove();
  expect(scripts.at(-1)).toContain("-X FAIRLEAD-flw1");
  const { length } = scripts;
  await time.advance(60 * 60_000);
  expect(scripts).toHaveLength(length);
});
