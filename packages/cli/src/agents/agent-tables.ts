import { type Agent, nodeOfRuntimeProvider } from "@fairlead/protocol/agents";
import { factLines } from "../terminal/fact-lines.ts";
import { formatTable } from "../terminal/table.ts";

/** Text output for agents. */

export function agentTable(agents: readonly Agent[]): string {
  if (agents.length === 0)
    return "no agents; create one with `fairlead agent create NAME --guest fairlead-demo-agent --node NODE`\n";
  const rows = agents.map(({ id, name, lifecycleState, guest, runtimeProvider, runtime }) => [
    id,
    name,
    lifecycleState,
    guest,
    runtimeProvider,
    runtime.message,
  ]);
  return formatTable(["ID", "NAME", "STATE", "GUEST", "RUNS ON", "MESSAGE"], rows);
}

/** All details of one agent. */
export function agentText(agent: Agent): string {
  const { runtime, runtimeProvider } = agent;
  const target = nodeOfRuntimeProvider(runtimeProvider);
  const elsewhere = runtime.nodeId === "" || runtime.nodeId === target ? "" : `; may still run on ${runtime.nodeId}`;
  return factLines([
    ["agent", `${agent.name} (${agent.id})`],
    ["state", agent.lifecycleState],
    ["reason", runtime.message],
    ["guest", agent.guest],
    ["runs on", `${runtimeProvider}${elsewhere}`],
    ["connectors", agent.connectorSlugs.join(", ")],
    ["image", [runtime.image, runtime.imageDigest.slice(0, 19)].filter(Boolean).join(" ")],
    ["started", runtime.startedAt ?? ""],
    ["restarts", runtime.restartCount === 0 ? "" : String(runtime.restartCount)],
    ["last exit", runtime.lastExit === null ? "" : `${runtime.lastExit.reason} at ${runtime.lastExit.at}`],
  ]);
}
