/**
 * Money: whole nano-dollars (10⁻⁹ USD) as safe integers, in the store and on the wire. BigInt only where two of them multiply. Pure.
 */

export const NANO_PER_DOLLAR = 1_000_000_000;
/** Above nine million dollars a double no longer holds every nano-dollar: no balance, budget or cost goes beyond. */
export const MAX_NANO_DOLLARS = 9_000_000 * NANO_PER_DOLLAR;

/** For people: at least cents, and as many places as there are. */
export function formatDollars(nanoDollars: number): string {
  const sign = nanoDollars < 0 ? "-" : "";
  const absolute = Math.abs(nanoDollars);
  const whole = Math.floor(absolute / NANO_PER_DOLLAR);
  const fraction = String(absolute % NANO_PER_DOLLAR).padStart(9, "0");
  return `${sign}$${whole}.${fraction.replace(/0{1,7}$/, "")}`;
}
