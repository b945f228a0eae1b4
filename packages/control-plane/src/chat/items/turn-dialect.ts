import type { Dialect } from "@fairlead/dialects/calls/dialect";

/** The dialects that chat sessions have a route for. */
export const TURN_DIALECTS = ["chat", "responses"] as const satisfies readonly Dialect[];
export type TurnDialect = (typeof TURN_DIALECTS)[number];
