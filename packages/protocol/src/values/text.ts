import { z } from "zod";

/**
 * Text from programs that may print anything. NUL is replaced, because PostgreSQL cannot store it and a report must not be lost.
 * @param max characters; daemons truncate longer text (`cutText`) before sending it
 */
export const anyText = (max: number): z.ZodString =>
  z
    .string()
    .max(max)
    .overwrite((text) => text.replaceAll("\0", "\ufffd"));

const ELLIPSIS = "…";

/** @returns at most `max` characters, with an ellipsis if truncated and no unpaired surrogate at the end. */
export function cutText(text: string, max: number): string {
  if (text.length <= max) return text;
  if (max < ELLIPSIS.length) return "";
  const kept = text.slice(0, max - ELLIPSIS.length);
  return (kept.isWellFormed() ? kept : kept.slice(0, -1)) + ELLIPSIS;
}

/** Rejects a list that is too long before validating its items, which might produce thousands of messages. */
export function boundedArray<T extends z.ZodType>(
  item: T,
  max: number,
  min = 0,
): z.ZodPreprocess<z.ZodArray<T>, z.input<T>[]> {
  const items = z.array(item).max(max);
  return z.preprocess(
    (value: z.input<T>[], context) => {
      if (!Array.isArray(value) || value.length <= max) return value;
      context.addIssue({ code: "too_big", origin: "array", maximum: max, inclusive: true, input: [] });
      return z.NEVER;
    },
    min === 0 ? items : items.min(min, "must not be empty"),
  );
}

/** For `.regex(...ONE_LINE)`. PostgreSQL cannot store NUL, terminals should not get control characters, and unpaired surrogates are lost. */
export const ONE_LINE = [/^[^\p{Cc}\p{Cs}]*$/u, "must not contain control characters or unpaired surrogates"] as const;

/** Bidirectional control characters could make text display differently from its content. */
export const DIRECTION_MARKS = /[\u202a-\u202e\u2066-\u2069]/g;

/** Display names: one line of 1–80 characters. */
export const nameSchema = z
  .string()
  .trim()
  .min(1, "must not be empty")
  .max(80, "must have at most 80 characters")
  .regex(...ONE_LINE);

/** Linear time; `/x+$/` would be quadratic. */
export function withoutTrailing(text: string, character: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end -= 1;
  return text.slice(0, end);
}

/** Protocol versions of the daemon link. */
export const protocolVersionsSchema = boundedArray(z.number().int().min(0).max(1_000_000), 16, 1);
