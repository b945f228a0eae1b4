import type { ChatMessage } from "@fairlead/protocol/chat";
import { isOutput, roleOf, textOf } from "./chat-item.ts";
import type { StoredItem } from "./chat-item-store.ts";

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
