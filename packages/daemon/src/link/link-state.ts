import { afterTold, fullJitter } from "@fairlead/protocol/values/backoff";

/** State machine of the daemon link: offline → hello → live, with backoff between attempts. Pure. */

export type LinkState =
  | { readonly name: "offline"; readonly attempt: number }
  | { readonly name: "hello"; readonly attempt: number }
  | { readonly name: "live" }
  | { readonly name: "backing-off"; readonly attempt: number; readonly delayMs: number }
  | { readonly name: "closed" };

export type LinkEvent =
  | { readonly type: "opened" }
  | { readonly type: "greeted" }
  | { readonly type: "lost"; readonly retryAfterMs: number | null }
  | { readonly type: "retry" }
  | { readonly type: "close" };

/** With this ceiling a whole fleet reconnects within a minute: all have tried within 20 s, and the server admits them in order. */
const BACKOFF = { baseMs: 1000, maxMs: 20_000 };
/** All daemons lose a restarting server simultaneously; jitter spreads their return (elastic-agent#13874). */
const EDGE_SPREAD_MS = 5000;
/** @param random two numbers in [0, 1). */
export function nextLinkState(state: LinkState, event: LinkEvent, random: readonly [number, number]): LinkState {
  if (state.name === "closed" || event.type === "close") return { name: "closed" };
  switch (event.type) {
    case "opened":
      return state.name === "offline" ? { name: "hello", attempt: state.attempt } : state;
    case "greeted":
      return state.name === "hello" ? { name: "live" } : state;
    case "retry":
      return state.name === "backing-off" ? { name: "offline", attempt: state.attempt } : state;
    case "lost":
      return state.name === "backing-off" ? state : backOff(state, event.retryAfterMs, random);
  }
}

function backOff(
  state: Exclude<LinkState, { name: "closed" | "backing-off" }>,
  toldMs: number | null,
  random: readonly [number, number],
): LinkState {
  const attempt = state.name === "live" ? 0 : state.attempt;
  // The server's delay replaces the backoff, which does not grow.
  if (toldMs !== null) return { name: "backing-off", attempt, delayMs: afterTold(toldMs, random[0]) };
  const edge = state.name === "live" ? random[1] * EDGE_SPREAD_MS : 0;
  return {
    name: "backing-off",
    attempt: attempt + 1,
    delayMs: fullJitter(BACKOFF, attempt, random[0]) + Math.floor(edge),
  };
}
