import * as fc from "fast-check";
import type { Attack } from "./attack.ts";
import { caller } from "./caller.ts";
import { issuer } from "./issuer.ts";
import { nodeLink } from "./node-link.ts";
import { nodeTunnel } from "./node-tunnel.ts";
import { engine, upstream } from "./upstream.ts";

const each = [nodeLink, nodeTunnel, upstream, engine, issuer, caller] as unknown as readonly Attack<object>[];

interface AnyMove {
  readonly attack: string;
  readonly move: object;
}

/** Moves of all the others at once. */
const together: Attack<AnyMove> = {
  name: "together",
  move: fc.oneof(...each.map(({ name, move }) => fc.record({ attack: fc.constant(name), move }))),
  known: {},
  perform: async ({ attack, move }, ground) => each.find(({ name }) => name === attack)?.perform(move, ground),
};

/** Every kind of attacker; their names select them. */
export const ATTACKS: readonly Attack<object>[] = [...each, together as unknown as Attack<object>];
