import { SimulatedDaemon } from "../support/simulated-daemon.ts";
import type { Closable, Ground } from "./attack.ts";
import { ATTACKS } from "./attacks.ts";
import type { Facts } from "./facts.ts";
import { tellParent } from "./helper.ts";
import { ReplyServer } from "./reply-server.ts";

/** The attacker: makes the moves that it is sent, and tells what it saw. */

export interface AttackerRequest {
  readonly round: number;
  readonly attack: string;
  readonly moves: readonly object[];
}

export interface AttackerReport {
  readonly ready: boolean;
  /** That is over; 0 before the first. */
  readonly round: number;
  readonly sent: number;
  readonly findings: readonly string[];
}

/** No move may take longer, whatever the server does. */
const MOVE_MS = 45_000;

let ground: Ground | null = null;

process.on("message", (message: Facts | AttackerRequest) => {
  if ("ports" in message) void prepare(message);
  else if (ground !== null) void attack(ground, message);
});
process.once("disconnect", () => process.exit());

async function prepare(facts: Facts): Promise<void> {
  const upstream = new ReplyServer();
  const engine = new ReplyServer();
  const issuer = new ReplyServer();
  await upstream.listen(facts.ports.hostileUpstream);
  await engine.listen(facts.ports.hostileEngine);
  await issuer.listen(facts.ports.hostileIssuer);
  // Nodes whose tunnels are hostile have to be in use.
  const nodes = facts.hostile.tunnel.nodes.map((node) => new SimulatedDaemon(node, { tunnel: false }));
  while (!nodes.every(({ isLive }) => isLive)) await new Promise((resolve) => setTimeout(resolve, 100));
  ground = { facts, upstream, engine, issuer, open: new Set<Closable>(), sent: 0, findings: [] };
  tellParent({ ready: true, round: 0, sent: 0, findings: [] } satisfies AttackerReport);
}

async function attack(at: Ground, { round, attack: name, moves }: AttackerRequest): Promise<void> {
  at.sent = 0;
  at.findings.length = 0;
  const chosen = ATTACKS.find((each) => each.name === name);
  if (chosen === undefined) throw new Error(`there is no attack ${name}`);
  await Promise.all(moves.map((move) => withinTime(chosen.perform(move, at), at.findings)));
  for (const socket of at.open) socket.destroy();
  at.open.clear();
  at.upstream.reset();
  at.engine.reset();
  at.issuer.reset();
  tellParent({ ready: true, round, sent: at.sent, findings: [...at.findings] } satisfies AttackerReport);
}

function withinTime(work: Promise<void>, findings: string[]): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, MOVE_MS);
    void work
      // Whatever the server does, an attacker expects it: this is a mistake of the attacker's own.
      .catch((error: unknown) => findings.push(`the attacker failed: ${String(error)}`))
      .then(() => {
        clearTimeout(timer);
        resolve();
      });
  });
}
