import type { Clock } from "@fairlead/protocol/clock";
import type { Retention } from "../retention.ts";
import type { SessionStore } from "./session-store.ts";

const EVERY_MS = 3_600_000;
/** Clocks differ, and a session is believed for a minute more; an hour is past all doubt. */
const KEEP_MS = 3_600_000;

/** @param sessions on the store's handle for long work. */
export function sessionRetention(sessions: SessionStore, clock: Clock): Retention {
  return {
    what: "sign-in sessions",
    everyMs: EVERY_MS,
    removeSome: (limit) => sessions.deleteEnded(clock.now() - KEEP_MS, limit),
  };
}
