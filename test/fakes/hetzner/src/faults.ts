/**
 * What goes wrong, by script. Numbers count down with each call that they spoil; the others hold until they are changed.
 * Slowness is counted in answers rather than in time, so that whoever polls sees every state on any machine.
 */
export interface Faults {
  /** `location` or `type@location`, where creates end in `resource_unavailable` although every list shows stock. */
  noCapacity: readonly string[];
  /** The same, but the lists know it. */
  soldOut: readonly string[];
  /** The next creates are accepted, and fail later: inside their action the server stays, off; or it vanishes. */
  failLater: { times: number; server: "stays" | "vanishes" };
  /** How many answers show a new server as being made, before it runs. */
  readsUntilRunning: number;
  /** How many answers show it without an address, once it runs. */
  readsUntilAddress: number;
  /** How many lists do not know a new server yet. */
  listsUntilSeen: number;
  /** How many answers show a deleted server, before it is gone. */
  readsUntilGone: number;
  /** The next calls are answered by 429. */
  rateLimited: number;
  /** The next calls are answered by 503. */
  unavailable: number;
  /** The next calls that change something are carried out, and the connection is cut before the answer. */
  lostAnswers: number;
  /** The next deletes are answered by 423. */
  locked: number;
  /** `/pricing` is answered by 404, as by an API that has none. */
  noPricing: boolean;
  /** Paths that answer 410, as after a change of the API. */
  removed: readonly string[];
}

export const NO_FAULTS: Faults = {
  noCapacity: [],
  soldOut: [],
  failLater: { times: 0, server: "stays" },
  readsUntilRunning: 1,
  readsUntilAddress: 0,
  listsUntilSeen: 0,
  readsUntilGone: 1,
  rateLimited: 0,
  unavailable: 0,
  lostAnswers: 0,
  locked: 0,
  noPricing: false,
  removed: [],
};

type Counter = "rateLimited" | "unavailable" | "lostAnswers" | "locked";

/** @returns whether the fault strikes this time. */
export function strikes(faults: Faults, counter: Counter): boolean {
  if (faults[counter] <= 0) return false;
  faults[counter] -= 1;
  return true;
}

export function isShort(places: readonly string[], type: string, location: string): boolean {
  return places.includes(location) || places.includes(`${type}@${location}`);
}
