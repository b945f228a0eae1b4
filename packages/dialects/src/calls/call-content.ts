import { isBase64 } from "../json/base64-text.ts";
import type { ByteReader } from "../json/byte-reader.ts";
import { BYTE, expect, skipIf, skipValue } from "../json/json-skip.ts";
import { KeyNames, readKey } from "../json/key-names.ts";

/**
 * Reads what of a call's input is more, or less, than its bytes tell: attachments, and references to what is stored elsewhere. Only
 * where upstreams look for them (`messages[].content[]`, `input[].content[]`, `tools[]`): anything else is text to a model, whatever
 * it looks like.
 */

export interface CallContent {
  /** Pictures, in the body or by reference. */
  images: number;
  /** Files, sounds, videos, and parts of kinds that are not known. */
  files: number;
  /** Bytes of attachments that are in the body: no text. */
  attachedBytes: number;
  /** About what attachments are charged as. */
  attachmentTokens: number;
  /** Items that only an upstream which stored them can read. */
  storedItems: number;
  /** Definitions of tools. */
  tools: number;
  /** Tools that the upstream runs by itself. */
  hostedTools: number;
}

/** A shorter string counts as text: it makes little difference. */
export const MIN_ATTACHED_BYTES = 4096;
/** About what a picture is charged as; its bytes say little of it. */
const ATTACHMENT_TOKENS = 1000;
/** About what of a file's or a sound's base64 becomes one token. */
const FILE_BYTES_PER_TOKEN = 200;

export const ITEM_KEYS = new KeyNames(["content", "output", "audio", "type", "id"]);
const IMAGE_KEYS = ["image_url", "image", "input_image", "image_embeds"] as const;
/** A picture may be one of these, where its part says so. */
const NEUTRAL_KEYS = ["file_id", "source"] as const;
const FILE_KEYS = [
  "file",
  "file_data",
  "file_url",
  "input_file",
  "document",
  "input_audio",
  "audio",
  "audio_url",
  "audio_embeds",
  "video",
  "video_url",
  "input_video",
] as const;
export const PART_KEYS = new KeyNames<string>(["type", ...IMAGE_KEYS, ...NEUTRAL_KEYS, ...FILE_KEYS]);
/** Of what a medium may be an object with. */
export const MEDIUM_KEYS = new KeyNames(["url", "data", "file_data"]);
export const TOOL_KEYS = new KeyNames(["type"]);

const IMAGE_TYPES = ["image_url", "input_image", "image"] as const;
const FILE_TYPES = ["input_file", "file", "input_audio", "audio_url", "input_video", "video_url"] as const;
const TEXT_TYPES = [
  "text",
  "input_text",
  "output_text",
  "refusal",
  "summary_text",
  "reasoning_text",
  "thinking",
] as const;
const IMAGE_ITEMS = ["image_generation_call", "computer_call_output"] as const;
const STORED_ITEMS = ["item_reference", "reasoning"] as const;
const OWN_TOOLS = ["function", "custom"] as const;
export const TYPES = new KeyNames<string>([
  ...IMAGE_TYPES,
  ...FILE_TYPES,
  ...TEXT_TYPES,
  ...IMAGE_ITEMS,
  ...STORED_ITEMS,
  ...OWN_TOOLS,
]);
/** The type of what names none: it is what its keys say. */
export const NO_TYPE = null;
export const UNKNOWN_TYPE = "";

export const noContent = (): CallContent => ({
  images: 0,
  files: 0,
  attachedBytes: 0,
  attachmentTokens: 0,
  storedItems: 0,
  tools: 0,
  hostedTools: 0,
});

/** Moves past the value of `messages` or `input`. */
export function readMessages(reader: ByteReader, found: CallContent): void {
  readElements(reader, () => readMessage(reader, found));
}

/** Moves past the value of `tools`. */
export function readTools(reader: ByteReader, found: CallContent): void {
  readElements(reader, () => {
    let type: string | null = NO_TYPE;
    readMembers(reader, TOOL_KEYS, () => {
      type = readType(reader);
    });
    countTool(type, found);
  });
}

export function countTool(type: string | null, found: CallContent): void {
  found.tools++;
  if (type !== NO_TYPE && !isOneOf(OWN_TOOLS, type)) found.hostedTools++;
}

function readMessage(reader: ByteReader, found: CallContent): void {
  let type: string | null = NO_TYPE;
  let hasId = false;
  let hasContent = false;
  readMembers(reader, ITEM_KEYS, (name) => {
    switch (name) {
      case "content":
      case "output":
        hasContent = true;
        readElements(reader, () => readPart(reader, found));
        return;
      case "type":
        type = readType(reader);
        return;
      case "id":
        hasId = true;
        skipValue(reader);
        return;
      case "audio":
        // An earlier answer's sound, by its id.
        found.files++;
        skipValue(reader);
    }
  });
  countItem({ type, hasId, hasContent }, found);
}

export interface ItemMembers {
  type: string | null;
  hasId: boolean;
  hasContent: boolean;
}

export function countItem({ type, hasId, hasContent }: ItemMembers, found: CallContent): void {
  if (isOneOf(IMAGE_ITEMS, type)) found.images++;
  else if (hasId && (isOneOf(STORED_ITEMS, type) || (type === NO_TYPE && !hasContent))) found.storedItems++;
}

function readPart(reader: ByteReader, found: CallContent): void {
  let type: string | null = NO_TYPE;
  let images = 0;
  let neutral = 0;
  let files = 0;
  const attachedBefore = found.attachedBytes;
  readMembers(reader, PART_KEYS, (name) => {
    if (name === "type") {
      type = readType(reader);
      return;
    }
    const kind = kindOf(name);
    if (kind === "images") images++;
    else if (kind === "neutral") neutral++;
    else files++;
    readMedium(reader, found);
  });
  countPart({ type, images, neutral, files, attachedBefore }, found);
}

/** What the members of one part are. */
export interface PartMembers {
  type: string | null;
  images: number;
  neutral: number;
  files: number;
  /** Bytes of attachments before this part. */
  readonly attachedBefore: number;
}

export function countPart({ type, attachedBefore, ...members }: PartMembers, found: CallContent): void {
  let { images, files } = members;
  const isImage = isOneOf(IMAGE_TYPES, type);
  if (!isImage) files += members.neutral;
  if (isImage && images === 0) images = 1;
  // A server that does not know a part may pass it to the model as text.
  if (!isImage && type !== NO_TYPE && !isOneOf(FILE_TYPES, type)) found.attachedBytes = attachedBefore;
  if (images + files === 0 && type !== NO_TYPE && !isOneOf(TEXT_TYPES, type)) files = 1;
  found.images += images;
  found.files += files;
  if (images + files === 0) return;
  const bytes = files === 0 ? 0 : found.attachedBytes - attachedBefore;
  found.attachmentTokens += Math.max((images + files) * ATTACHMENT_TOKENS, Math.ceil(bytes / FILE_BYTES_PER_TOKEN));
}

/** @param name of `PART_KEYS`, but for the type. */
export function kindOf(name: string): "images" | "neutral" | "files" {
  if (isOneOf(IMAGE_KEYS, name)) return "images";
  return isOneOf(NEUTRAL_KEYS, name) ? "neutral" : "files";
}

export const isTextType = (type: unknown): boolean => typeof type === "string" && isOneOf(TEXT_TYPES, type);

const isOneOf = (names: readonly string[], name: string | null): boolean => name !== null && names.includes(name);

/** A URL, base64, or an object that holds one. */
function readMedium(reader: ByteReader, found: CallContent): void {
  if (reader.peekAfterSpace() === BYTE.openBrace) readMembers(reader, MEDIUM_KEYS, () => readMediumText(reader, found));
  else readMediumText(reader, found);
}

function readMediumText(reader: ByteReader, found: CallContent): void {
  const isText = reader.peekAfterSpace() === BYTE.quote;
  const start = reader.position + 1;
  skipValue(reader);
  const bytes = reader.position - 1 - start;
  if (!isText || bytes < MIN_ATTACHED_BYTES) return;
  if (isBase64(reader.pieces(start, start + bytes))) found.attachedBytes += bytes;
}

function readType(reader: ByteReader): string | null {
  const first = reader.peekAfterSpace();
  const start = reader.position;
  skipValue(reader);
  if (first === NULL_START) return NO_TYPE;
  if (first !== BYTE.quote) return UNKNOWN_TYPE;
  return TYPES.find(reader, start, reader.position)?.name ?? UNKNOWN_TYPE;
}

/** Of the only word that begins with it. */
const NULL_START = 0x6e;

/** Moves past an array, or past anything else without a look. @param read moves past an element. */
function readElements(reader: ByteReader, read: () => void): void {
  if (reader.peekAfterSpace() !== BYTE.openBracket) {
    skipValue(reader);
    return;
  }
  reader.skip();
  if (skipIf(reader, BYTE.closeBracket)) return;
  do read();
  while (skipIf(reader, BYTE.comma));
  expect(reader, BYTE.closeBracket);
}

/** Moves past an object, or past anything else without a look. @param read moves past the value of a wanted key. */
function readMembers<N extends string>(reader: ByteReader, keys: KeyNames<N>, read: (name: N) => void): void {
  if (reader.peekAfterSpace() !== BYTE.openBrace) {
    skipValue(reader);
    return;
  }
  reader.skip();
  if (skipIf(reader, BYTE.closeBrace)) return;
  do {
    const found = readKey(reader, keys);
    if (found === undefined) skipValue(reader);
    else read(found.name);
  } while (skipIf(reader, BYTE.comma));
  expect(reader, BYTE.closeBrace);
}
