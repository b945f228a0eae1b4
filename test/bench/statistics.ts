/** @returns the middle one; of an even number the mean of the two. Null where there is none. */
export function median(values: readonly (number | null)[]): number | null {
  const sorted = present(values);
  const middle = sorted.length / 2;
  const [low, high] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]];
  return low === undefined || high === undefined ? null : (low + high) / 2;
}

/** `median (least..most)`; "" where there is none. */
export function spread(values: readonly (number | null)[]): string {
  const sorted = present(values);
  const [least, most, middle] = [sorted[0], sorted.at(-1), median(sorted)];
  if (least === undefined || most === undefined || middle === null) return "";
  if (sorted.length === 1) return roundedText(middle);
  return `${roundedText(middle)} (${roundedText(least)}..${roundedText(most)})`;
}

function present(values: readonly (number | null)[]): number[] {
  return values.filter((value) => value !== null).toSorted((a, b) => a - b);
}

/** About three digits, as more would be noise. */
export function roundedText(value: number): string {
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString("en-US");
  return value.toFixed(size >= 10 ? 1 : 2);
}
