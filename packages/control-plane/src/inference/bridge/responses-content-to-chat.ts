import type { ChatCompletionContentPart } from "openai/resources/chat/completions/completions";
import { z } from "zod";
import { objectAt, parseAt, refusal, textAt, without } from "./parse.ts";
import type { JsonObject } from "./wire.ts";

/** Parts of content, from `/v1/responses` to chat completions. */

const contentSchema = z.union([z.string(), z.array(z.unknown())], { error: "must be a text or a list of parts" });

/** @returns a text where the content is one, which every engine takes. */
export function toChatContent(content: unknown, path: string): string | ChatCompletionContentPart[] {
  const parsed = parseAt(contentSchema, content, path);
  if (typeof parsed === "string") return parsed;
  const parts = parsed.map((part, index) => toChatPart(objectAt(part, `${path}[${index}]`), `${path}[${index}]`));
  const [only] = parts;
  // What else a text part says (a cache mark) would be lost in a plain text.
  const isPlain = parts.length === 1 && only?.type === "text" && Object.keys(only).length === 2;
  return isPlain ? only.text : parts;
}

function toChatPart(part: JsonObject, path: string): ChatCompletionContentPart {
  const type = textAt(part["type"], `${path}.type`);
  switch (type) {
    case "input_text":
    case "output_text":
      return {
        ...without(part, ["annotations", "logprobs"]),
        type: "text",
        text: textAt(part["text"], `${path}.text`),
      };
    case "input_image":
      return toChatImage(part, path);
    case "input_file":
      return toChatFile(part, path);
    default:
      // `input_audio` has one form in both dialects, and an engine's own part types are the engine's to judge.
      return part as unknown as ChatCompletionContentPart;
  }
}

const detail = z.enum(["auto", "low", "high", "original"]).nullish();

function toChatImage(part: JsonObject, path: string): ChatCompletionContentPart {
  if (typeof part["file_id"] === "string") {
    throw refusal(
      `${path}.file_id`,
      `\`${path}.file_id\`: chat completions take no image by id; send it in \`image_url\`.`,
    );
  }
  const url = textAt(part["image_url"], `${path}.image_url`);
  const wanted = parseAt(detail, part["detail"], `${path}.detail`);
  const rest = without(part, ["image_url", "detail", "file_id"]);
  return { ...rest, type: "image_url", image_url: { url, ...(wanted ? { detail: wanted } : {}) } };
}

const optionalText = z.string().nullish();

function toChatFile(part: JsonObject, path: string): ChatCompletionContentPart {
  const { file_data, file_id, file_url, filename } = part;
  if (typeof file_url === "string") {
    throw refusal(
      `${path}.file_url`,
      `\`${path}.file_url\`: send the file itself in \`file_data\`; nothing is downloaded here.`,
    );
  }
  const id = parseAt(optionalText, file_id, `${path}.file_id`);
  const name = parseAt(optionalText, filename, `${path}.filename`);
  const source = id ? { file_id: id } : { file_data: textAt(file_data, `${path}.file_data`) };
  const rest = without(part, ["file_data", "file_id", "file_url", "filename", "detail"]);
  return { ...rest, type: "file", file: { ...source, ...(name ? { filename: name } : {}) } };
}

/** The text of content that may only be text: system messages, tool outputs. */
export function joinTexts(content: string | readonly ChatCompletionContentPart[], separator: string): string | null {
  if (typeof content === "string") return content;
  const texts = content.map((part) => (part.type === "text" ? part.text : null));
  return texts.includes(null) ? null : texts.join(separator);
}
