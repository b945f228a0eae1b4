import type { ChatMessage } from "@fairlead/protocol/chat";
import { isOutput, roleOf, type StoredItem, textOf } from "./chat-item.ts";

/** An item as it is listed. Pure. */
export function toChatMessage({ id, turnId, position, status, item, usage, createdAt }: StoredItem): ChatMessage {
  return {
    id,
    turnId,
    position,
    status,
    role: roleOf(item) ?? (isOutput(item) ? "tool" : "assistant"),
    content: textOf(item),
    item: { ...item },
    ...(usage === null ? {} : { usage }),
    createdAt: new Date(createdAt).toISOString(),
  };
}
