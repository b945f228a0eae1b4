import { SimulatedDaemon, type SimulatedNode } from "../../support/simulated-daemon.ts";

/** Many simulated daemons in one process, for `test/bench/fleet.ts`: it sends the nodes, and is told how they fare. */

export interface DaemonsToRun {
  readonly nodes: readonly SimulatedNode[];
  readonly tunnels: boolean;
}

export type DaemonsReport =
  | { readonly live: number; readonly tunnels: number; readonly links: number }
  | { readonly nodeId: string; readonly generation: number; readonly at: number };

const REPORT_MS = 100;

process.once("message", ({ nodes, tunnels }: DaemonsToRun) => {
  const tell = (report: DaemonsReport): void => {
    if (process.connected) process.send?.(report);
  };
  const daemons = nodes.map(
    (node) =>
      new SimulatedDaemon(node, {
        tunnel: tunnels,
        onState: ({ nodeId, generation }) =>
          tell({ nodeId, generation, at: performance.timeOrigin + performance.now() }),
      }),
  );
  setInterval(() => {
    const count = (of: (daemon: SimulatedDaemon) => boolean): number => daemons.filter(of).length;
    const links = daemons.reduce((sum, daemon) => sum + daemon.links, 0);
    tell({ live: count(({ isLive }) => isLive), tunnels: count(({ hasTunnel }) => hasTunnel), links });
  }, REPORT_MS);
});
process.once("disconnect", () => process.exit());
