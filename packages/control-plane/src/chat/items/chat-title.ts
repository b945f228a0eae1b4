import { DIRECTION_MARKS, ONE_LINE } from "@fairlead/protocol/values/text";
import { z } from "zod";

/** Session titles. Pure. */

const MOST_GRAPHEMES = 60;
/** Maximum characters lost by cutting at a word boundary; longer words are cut in the middle. */
const LONGEST_CUT = 20;
/** Enough for any title, since questions can be very long. */
const MOST_READ = 2000;

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });

/** Title from the first question: one line, cut at a word boundary if possible, never within a grapheme. */
export function titleOf(question: string): string {
  const line = question
    .slice(0, MOST_READ)
    .toWellFormed()
    .replaceAll(DIRECTION_MARKS, "")
    .replaceAll(/[\p{Cc}\p{Cs}\s\u200b\ufffd]+/gu, " ")
    .trim();
  const parts = Array.from(graphemes.segment(line), ({ segment }) => segment);
  if (parts.length <= MOST_GRAPHEMES) return line;
  const kept = parts.slice(0, MOST_GRAPHEMES - 1);
  const lastSpace = parts[kept.length] === " " ? kept.length : kept.lastIndexOf(" ");
  const end = lastSpace >= kept.length - LONGEST_CUT ? lastSpace : kept.length;
  return `${kept.slice(0, end).join("").trimEnd()}…`;
}

/** A title set by a user. */
export const titleSchema = z
  .string()
  .overwrite((text) => text.replaceAll(DIRECTION_MARKS, "").trim())
  .min(1, "must not be empty")
  .max(200, "must have at most 200 characters")
  .regex(...ONE_LINE);

const MOST_PAIRS = 16;

/** Same limits as OpenAI's metadata. */
export const metadataSchema = z
  .record(
    z.string().min(1).max(64, "a name must have at most 64 characters"),
    z.string().max(512, "a value must have at most 512 characters"),
  )
  .refine((pairs) => Object.keys(pairs).length <= MOST_PAIRS, `must have at most ${MOST_PAIRS} pairs`);
