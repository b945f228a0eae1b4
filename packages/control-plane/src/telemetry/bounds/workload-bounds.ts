import type { BoundRows } from "./bound-row.ts";

/** What containers on a node may reach and use. */
export const WORKLOAD_BOUNDS = {
  workload_peers: {
    party: "workload",
    entry: "its network",
    limit: "the port where the daemon forwards to the platform, and other machines",
    effect: "packets to other workloads, the machine itself, 169.254.0.0/16 and other metadata addresses are dropped",
    counted: "the packet counters of the chain `FAIRLEAD-…` (`iptables -t mangle -L -v`)",
    event: "the condition `network` if the rules cannot be installed; no container starts then",
    test: "packages/daemon/src/runtime/docker/docker-networks.test.ts: a workload reaches the platform through the daemon, and no other workload",
  },
  workload_internet: {
    party: "workload",
    entry: "its network",
    limit: "only the platform, with `network.internet: false` in its config",
    effect: "packets to anything else are dropped, and names are not resolved",
    counted: "the packet counters of the chain `FAIRLEAD-…`",
    test: "packages/daemon/src/runtime/docker/docker-networks.test.ts: without internet a workload reaches only the platform",
  },
  workload_platform_connections: {
    party: "workload",
    entry: "the daemon's connection to the platform",
    limit: "128 connections at a time per workload",
    effect: "further connections are closed",
    counted: "the daemon's log: `a workload has too many connections to the platform`",
    test: "packages/daemon/src/host/platform-forwarder.test.ts: a workload's connections to the platform are limited",
  },
  workload_tmp: {
    party: "workload",
    entry: "`/tmp`, in memory",
    limit: "1 GiB, `resources.tmpMb` in its config",
    effect: "its writes fail with ENOSPC",
    counted: "the workload's own log",
    test: "packages/daemon/src/runtime/docker/docker-networks.test.ts: /tmp has a size",
  },
  workload_memory: {
    party: "workload",
    entry: "the machine's memory",
    limit: "`resources.memoryMb` in its config; no default",
    effect: "the kernel kills it, and the daemon restarts it with increasing delays",
    counted: "the event `workload_exited`: out of memory",
    event: "the condition `memory`, while a workload has no limit",
    test: "packages/daemon/src/host/condition-rules.test.ts: has a warning while a workload has no limit",
  },
} as const satisfies BoundRows;
