import type { ChatCompletionContentPart } from "openai/resources/chat/completions/completions";
import { z } from "zod";
import { isObject, objectAt, parseAt, refusal, textAt, without } from "../../json/parse.ts";
import type { JsonObject } from "../wire.ts";

/** Converts content parts from `/v1/responses` to chat completions. */

const contentSchema = z.array(z.unknown(), { error: "must be a string or a list of parts" });

/** @returns a string for a single text part, which every engine accepts. */
export function toChatContent(content: unknown, path: string): string | ChatCompletionContentPart[] {
  if (typeof content === "string") return content;
  const text = onlyText(content);
  if (text !== null) return text;
  const parsed = Array.isArray(content) ? content : parseAt(contentSchema, content, path);
  const parts = parsed.map((part, index) => toChatPart(objectAt(part, `${path}[${index}]`), `${path}[${index}]`));
  const [only] = parts;
  // Other fields of a text part (a cache mark) would be lost in a plain string.
  const isPlain = parts.length === 1 && only?.type === "text" && Object.keys(only).length === 2;
  return isPlain ? only.text : parts;
}

/** The text of content that is one part and nothing but text, as most of a long history is. */
function onlyText(content: unknown): string | null {
  if (!Array.isArray(content) || content.length !== 1) return null;
  const part: unknown = content[0];
  if (!isObject(part) || (part["type"] !== "input_text" && part["type"] !== "output_text")) return null;
  for (const key in part) if (key !== "type" && key !== "text") return null;
  return typeof part["text"] === "string" ? part["text"] : null;
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
      // `input_audio` is the same in both dialects; engines validate their own part types.
      return part as unknown as ChatCompletionContentPart;
  }
}

const detail = z.enum(["auto", "low", "high", "original"]).nullish();

function toChatImage(part: JsonObject, path: string): ChatCompletionContentPart {
  if (typeof part["file_id"] === "string") {
    throw refusal(
      `${path}.file_id`,
      `\`${path}.file_id\`: images by ID are not supported with this model. Send the image in \`image_url\`.`,
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
      `\`${path}.file_url\`: files are not downloaded here. Send the file itself in \`file_data\`.`,
    );
  }
  const id = parseAt(optionalText, file_id, `${path}.file_id`);
  const name = parseAt(optionalText, filename, `${path}.filename`);
  const source = id ? { file_id: id } : { file_data: textAt(file_data, `${path}.file_data`) };
  const rest = without(part, ["file_data", "file_id", "file_url", "filename", "detail"]);
  return { ...rest, type: "file", file: { ...source, ...(name ? { filename: name } : {}) } };
}

/** Text-only content: system messages, tool outputs. */
export function joinTexts(content: string | readonly ChatCompletionContentPart[], separator: string): string | null {
  if (typeof content === "string") return content;
  const texts = content.map((part) => (part.type === "text" ? part.text : null));
  return texts.includes(null) ? null : texts.join(separator);
}
