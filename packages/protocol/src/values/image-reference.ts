import { z } from "zod";

const HOST = String.raw`(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\])(?::\d+)?`;
const PART = String.raw`[a-z0-9]+(?:[._-]+[a-z0-9]+)*`;
const REFERENCE = new RegExp(
  String.raw`^(?:${HOST}/)?${PART}(?:/${PART})*(?::\w[\w.-]{0,127})?(?:@[A-Za-z0-9+._-]+:[0-9A-Fa-f]+)?$`,
);
const MAX_LENGTH = 512;

/** An image name or id that a container engine cannot mistake for an option, a path or another request. */
export const imageReferenceSchema = z
  .string()
  .min(1)
  // Checked first, because the expression takes quadratic time.
  .max(MAX_LENGTH, { abort: true })
  .regex(REFERENCE, "must be an image reference such as registry.example.com/team/engine:4");

export function isImageReference(text: string): boolean {
  return text.length <= MAX_LENGTH && REFERENCE.test(text);
}
