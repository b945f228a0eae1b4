/** Converts between dollar amounts and integer nano-dollars. */

const NANO_PER_DOLLAR = 1_000_000_000;
const DOLLARS = /^\$?(\d{1,6})(?:\.(\d{1,9}))?$/;

/** @param text such as `25`, `$0.50` or `0.000001`. @returns nano-dollars, or null for anything else. */
export function parseDollars(text: string): number | null {
  const match = DOLLARS.exec(text);
  if (match === null) return null;
  const [, whole = "", fraction = ""] = match;
  return Number(whole) * NANO_PER_DOLLAR + Number(fraction.padEnd(9, "0"));
}

/** At least two decimal places, without trailing zeros beyond them. */
export function formatDollarAmount(nanoDollars: number): string {
  const fraction = String(nanoDollars % NANO_PER_DOLLAR).padStart(9, "0");
  return `$${Math.floor(nanoDollars / NANO_PER_DOLLAR)}.${fraction.replace(/0{1,7}$/, "")}`;
}
