import { ONE_LINE } from "@fairlead/protocol/text";
import { z } from "zod";

/** What a session is called. Pure. */

const MOST_GRAPHEMES = 60;
/** A word may be this much shorter than the whole title; a longer one is cut in its middle. */
const LONGEST_CUT = 20;
/** Enough for any title: a question may be a book. */
const MOST_READ = 2000;

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });

/** Of a session's first question: one line, cut at a word where there is one, never within what a reader sees as one character. */
export function titleOf(question: string): string {
  const line = question
    .slice(0, MOST_READ)
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Cs}\s\u200b\ufffd]+/gu, " ")
    .trim();
  const parts = Array.from(graphemes.segment(line), ({ segment }) => segment);
  if (parts.length <= MOST_GRAPHEMES) return line;
  const kept = parts.slice(0, MOST_GRAPHEMES - 1);
  const lastSpace = parts[kept.length] === " " ? kept.length : kept.lastIndexOf(" ");
  const end = lastSpace >= kept.length - LONGEST_CUT ? lastSpace : kept.length;
  return `${kept.slice(0, end).join("").trimEnd()}…`;
}

/** A person's title. */
export const titleSchema = z
  .string()
  .trim()
  .min(1, "must not be empty")
  .max(200, "must have at most 200 characters")
  .regex(...ONE_LINE);

const MOST_PAIRS = 16;

/** As OpenAI's metadata: what clients of its API keep there fits. */
export const metadataSchema = z
  .record(
    z.string().min(1).max(64, "a name must have at most 64 characters"),
    z.string().max(512, "a value must have at most 512 characters"),
  )
  .refine((pairs) => Object.keys(pairs).length <= MOST_PAIRS, `must have at most ${MOST_PAIRS} pairs`);
