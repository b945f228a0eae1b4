import type { DesiredState } from "@fairlead/protocol/workload";
import type { ProxyRules } from "@fairlead/wire/proxy/proxy-rules";
import type { DaemonLog } from "../process/log.ts";
import type { Timers } from "../process/timers.ts";
import type { NetworkRules } from "../reconcile/execute.ts";
import type { LoopSnapshot } from "../reconcile/loop.ts";
import type { Owner } from "../runtime/container-runtime.ts";
import { bridgePrefix } from "../runtime/docker/docker-networks.ts";
import type { ConditionFinding } from "./condition-rules.ts";
import { machineNetwork } from "./machine-network.ts";
import { NetworkGuard } from "./network-guard.ts";
import { PlatformForwarder } from "./platform-forwarder.ts";
import { type RuleFacts, removeScript } from "./workload-rules.ts";

export interface WorkloadNetworksDeps {
  readonly owner: Owner;
  readonly workloadSubnets: string;
  readonly runtime: { changeNetwork(owner: Owner, script: string): Promise<string> };
  readonly proxies?: Pick<ProxyRules, "find">;
  readonly timers: Timers;
  readonly log: DaemonLog;
  readonly onFinding: (type: "network" | "platform", finding: ConditionFinding) => void;
}

/** Everything around workload networks: packet filter rules and forwarding to the platform. */
export interface WorkloadNetworks {
  readonly rules: NetworkRules;
  desiredChanged(state: DesiredState): void;
  observed(snapshot: LoopSnapshot): void;
  close(): Promise<void>;
  /** The node was removed. */
  remove(): Promise<void>;
}

export function openWorkloadNetworks(deps: WorkloadNetworksDeps): WorkloadNetworks {
  const { owner, workloadSubnets, runtime, proxies, timers, log, onFinding } = deps;
  const guard = new NetworkGuard({
    facts: { bridges: bridgesOf(owner), pool: workloadSubnets },
    run: (script) => runtime.changeNetwork(owner, script),
    machine: machineNetwork(timers),
    timers,
    log,
    onFinding: (finding) => onFinding("network", finding),
  });
  const forwarder = new PlatformForwarder({
    log,
    onFinding: (finding) => onFinding("platform", finding),
    ...(proxies === undefined ? {} : { proxies }),
  });
  let wasAway = false;
  return {
    rules: { ready: () => guard.ready(), noWay: (workloadId) => forwarder.faultOf(workloadId) },
    desiredChanged: (state) => guard.desiredChanged(state),
    observed: (snapshot) => {
      forwarder.observed(snapshot);
      if (wasAway && snapshot.away === null) guard.renew();
      wasAway = snapshot.away !== null;
    },
    close: async () => {
      await Promise.all([guard.close(), forwarder.close()]);
    },
    remove: () => guard.remove(),
  };
}

/** Removes the rules of a node whose daemon is not running. */
export async function removeNetworkRules(runtime: WorkloadNetworksDeps["runtime"], owner: Owner): Promise<void> {
  await runtime.changeNetwork(owner, removeScript(bridgesOf(owner)));
}

function bridgesOf(owner: Owner): RuleFacts["bridges"] {
  return { internet: bridgePrefix(owner, true), offline: bridgePrefix(owner, false) };
}
