import type { JsonObject } from "../convert/wire.ts";
import { isBase64 } from "../json/base64-text.ts";
import { isObject } from "../json/parse.ts";
import {
  type CallContent,
  countItem,
  countPart,
  countTool,
  ITEM_KEYS,
  type ItemMembers,
  isTextType,
  kindOf,
  MEDIUM_KEYS,
  MIN_ATTACHED_BYTES,
  NO_TYPE,
  PART_KEYS,
  type PartMembers,
  TOOL_KEYS,
  TYPES,
  UNKNOWN_TYPE,
} from "./call-content.ts";

/** What `call-content.ts` finds in the bytes of messages and tools, found in their parsed form. */

/** @param value of `messages` or `input`. */
export function countMessages(value: unknown, found: CallContent): void {
  if (Array.isArray(value)) for (const message of value) if (isObject(message)) countMessage(message, found);
}

/** @param value of `tools`. */
export function countTools(value: unknown, found: CallContent): void {
  if (!Array.isArray(value)) return;
  for (const tool of value) {
    let type: string | null = NO_TYPE;
    if (isObject(tool)) {
      for (const key in tool) if (TOOL_KEYS.named(key) !== undefined) type = typeOf(tool[key]);
    }
    countTool(type, found);
  }
}

function countMessage(message: JsonObject, found: CallContent): void {
  const members: ItemMembers = { type: NO_TYPE, hasId: false, hasContent: false };
  for (const key in message) {
    const name = ITEM_KEYS.named(key)?.name;
    if (name === undefined) continue;
    switch (name) {
      case "content":
      case "output":
        members.hasContent = true;
        countParts(message[key], found);
        break;
      case "type":
        members.type = typeOf(message[key]);
        break;
      case "id":
        members.hasId = true;
        break;
      case "audio":
        found.files++;
    }
  }
  countItem(members, found);
}

function countParts(value: unknown, found: CallContent): void {
  if (Array.isArray(value)) for (const part of value) countOne(part, found);
}

function countOne(part: unknown, found: CallContent): void {
  if (isPlainText(part)) return;
  const members: PartMembers = {
    type: NO_TYPE,
    images: 0,
    neutral: 0,
    files: 0,
    attachedBefore: found.attachedBytes,
  };
  if (isObject(part)) {
    for (const key in part) {
      const name = PART_KEYS.named(key)?.name;
      if (name === undefined) continue;
      if (name === "type") {
        members.type = typeOf(part[key]);
        continue;
      }
      members[kindOf(name)]++;
      countMedium(part[key], found);
    }
  }
  countPart(members, found);
}

/** Most parts are, and add nothing. */
function isPlainText(part: unknown): boolean {
  if (!isObject(part)) return false;
  for (const key in part) if (key !== "type" && key !== "text") return false;
  return isTextType(part["type"]);
}

/** A URL, base64, or an object that holds one. */
function countMedium(value: unknown, found: CallContent): void {
  if (!isObject(value)) countMediumText(value, found);
  else for (const key in value) if (MEDIUM_KEYS.named(key) !== undefined) countMediumText(value[key], found);
}

function countMediumText(value: unknown, found: CallContent): void {
  // What JSON escapes is no base64, so its length is what is written.
  if (typeof value !== "string" || value.length < MIN_ATTACHED_BYTES || value.includes("\\")) return;
  const bytes = Buffer.from(value);
  if (isBase64([bytes])) found.attachedBytes += bytes.length;
}

function typeOf(value: unknown): string | null {
  if (value === null) return NO_TYPE;
  return typeof value === "string" ? (TYPES.named(value)?.name ?? UNKNOWN_TYPE) : UNKNOWN_TYPE;
}
