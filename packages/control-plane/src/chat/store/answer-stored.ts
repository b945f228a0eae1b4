import type { ResponsesItem, StoredItem } from "../items/chat-item.ts";
import type { TurnEnd } from "./turn-log.ts";

/** A response's items in stored form. Pure. */

interface EndedTurn {
  readonly turnId: string;
  readonly end: Pick<TurnEnd, "status" | "items" | "usage">;
  /** Position of the first item. */
  readonly position: number;
  readonly at: number;
}

/** @param makeId for items without an ID. */
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

/** Some upstreams repeat an ID in each response or send an invalid one. */
const FORM = /^[\w.:-]{1,128}$/;

function ownId({ id }: ResponsesItem): string | null {
  return typeof id === "string" && FORM.test(id) ? id : null;
}
