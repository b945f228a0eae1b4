import type { Clock } from "@fairlead/protocol/clock";
import type { Retention } from "../retention.ts";
import type { OAuthStore } from "./oauth-store.ts";

const EVERY_MS = 3_600_000;

/** @param rows on the store's handle for long work. */
export function signInRetention(rows: OAuthStore, clock: Clock): Retention {
  return { what: "tokens and codes", everyMs: EVERY_MS, removeSome: (limit) => rows.deleteEnded(clock.now(), limit) };
}
