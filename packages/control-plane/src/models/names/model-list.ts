import { parseJson } from "@fairlead/protocol/values/parse-json";
import { z } from "zod";
import { upstreamModelSchema } from "./model-name.ts";

/** What `GET {base}/models` answers, as providers differ in it. Pure. */

const listSchema = z.union([
  z.looseObject({ data: z.array(z.unknown()) }).transform(({ data }) => data),
  // Together's.
  z.array(z.unknown()),
]);
const itemSchema = z.looseObject({ id: upstreamModelSchema });

const MAX_LISTED = 2000;

/** @returns the models' names in the provider's order; null for what is no list of models. An entry without a name is passed over. */
export function readModelList(text: string): readonly string[] | null {
  const list = listSchema.safeParse(jsonIn(text));
  if (!list.success) return null;
  const names = list.data.slice(0, MAX_LISTED).flatMap((item) => {
    const parsed = itemSchema.safeParse(item);
    return parsed.success ? [parsed.data.id] : [];
  });
  return [...new Set(names)];
}

/** @returns undefined for what is not JSON. */
export function jsonIn(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
