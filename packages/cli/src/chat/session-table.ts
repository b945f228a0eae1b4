import type { ChatSession } from "@fairlead/protocol/chat";
import { formatTable } from "../terminal/table.ts";

/** @param numbered adds a column with numbers from 1. */
export function sessionTable(sessions: readonly ChatSession[], { numbered = false } = {}): string {
  const rows = sessions.map(({ id, title, model, messageCount, updatedAt, running }, index) => [
    ...(numbered ? [String(index + 1)] : []),
    id,
    title,
    String(messageCount),
    running ? "running" : updatedAt,
    model ?? "",
  ]);
  return formatTable([...(numbered ? [""] : []), "ID", "TITLE", "MESSAGES", "LAST USED", "MODEL"], rows);
}
