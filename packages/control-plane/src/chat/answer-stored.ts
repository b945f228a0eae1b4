import type { ResponsesItem, StoredItem } from "./chat-item.ts";
import type { TurnEnd } from "./turn-log.ts";

/** The items of an answer as they are stored. Pure. */

interface EndedTurn {
  readonly turnId: string;
  readonly end: Pick<TurnEnd, "status" | "items" | "usage">;
  /** Of the first item. */
  readonly position: number;
  readonly at: number;
}

/** @param makeId for an item that has none of its own. */
export function answerItems({ turnId, end, position, at }: EndedTurn, makeId: (index: number) => string): StoredItem[] {
  const taken = new Set<string>();
  return end.items.map((item, index) => {
    const own = ownId(item);
    const id = own !== null && !taken.has(own) ? own : makeId(index);
    taken.add(id);
    return {
      id,
      turnId,
      position: position + index,
      status: end.status === "completed" || item["status"] === "completed" ? "completed" : "incomplete",
      item,
      createdAt: at,
      usage: index === end.items.length - 1 ? end.usage : null,
    };
  });
}

/** Some upstreams give the same id in every answer, or something that is none. */
const FORM = /^[\w.:-]{1,128}$/;

function ownId({ id }: ResponsesItem): string | null {
  return typeof id === "string" && FORM.test(id) ? id : null;
}
