import { z } from "zod";

/** A list or map among the settings: from the environment it comes as JSON. What is no JSON is left for the schema to refuse. */
export const fromJson = <T extends z.ZodType>(schema: T): z.ZodPreprocess<T> =>
  z.preprocess((value) => {
    if (typeof value !== "string") return value;
    try {
      return JSON.parse(value) as unknown;
    } catch {
      return value;
    }
  }, schema);
