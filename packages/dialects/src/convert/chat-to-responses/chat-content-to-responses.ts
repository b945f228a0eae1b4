import type { ResponseInputContent } from "openai/resources/responses/responses";
import { z } from "zod";
import { objectAt, parseAt, textAt, without } from "../../json/parse.ts";
import type { JsonObject } from "../wire.ts";

/** Converts content parts from chat completions to `/v1/responses`. */

const contentSchema = z.union([z.string(), z.array(z.unknown())], { error: "must be a string or a list of parts" });

export function toInputContent(content: unknown, path: string): string | ResponseInputContent[] {
  const parsed = parseAt(contentSchema, content, path);
  if (typeof parsed === "string") return parsed;
  return parsed.map((part, index) => toInputPart(objectAt(part, `${path}[${index}]`), `${path}[${index}]`));
}

const imageSchema = z.object({ url: z.string(), detail: z.enum(["auto", "low", "high", "original"]).nullish() });

function toInputPart(part: JsonObject, path: string): ResponseInputContent {
  switch (textAt(part["type"], `${path}.type`)) {
    case "text":
      return { ...part, type: "input_text", text: textAt(part["text"], `${path}.text`) };
    case "image_url": {
      const { url, detail } = parseAt(imageSchema, part["image_url"], `${path}.image_url`);
      return { ...part, type: "input_image", image_url: url, detail: detail ?? "auto" };
    }
    case "file":
      return { ...without(part, ["file"]), ...objectAt(part["file"], `${path}.file`), type: "input_file" };
    default:
      // `input_audio` is the same in both dialects; the upstream validates other types.
      return part as unknown as ResponseInputContent;
  }
}
