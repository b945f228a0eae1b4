import { type Condition, type ConditionType, MAX_CONDITION_MESSAGE } from "@fairlead/protocol/conditions";
import { cutText } from "@fairlead/protocol/values/text";
import type { ConditionFinding } from "./condition-rules.ts";

export interface ConditionBoardDeps {
  /** RFC 3339. */
  readonly time: () => string;
  readonly onEvent: (kind: string, workloadId: null, message: string) => void;
  readonly onChange: () => void;
}

/** The machine's conditions. A change of status or reason emits an event. */
export class ConditionBoard {
  readonly #deps: ConditionBoardDeps;
  readonly #conditions = new Map<ConditionType, Condition>();

  constructor(deps: ConditionBoardDeps) {
    this.#deps = deps;
  }

  set(type: ConditionType, found: ConditionFinding): void {
    const finding = { ...found, message: cutText(found.message, MAX_CONDITION_MESSAGE) };
    const before = this.#conditions.get(type);
    const same = before?.status === finding.status && before.reason === finding.reason;
    if (same && before.message === finding.message) return;
    const since = same ? before.since : this.#deps.time();
    this.#conditions.set(type, { type, ...finding, since });
    // The first `ok` is not an event.
    const news = before === undefined ? finding.status === "problem" : !same;
    if (news) this.#deps.onEvent(`condition_${finding.status}`, null, eventText(type, finding));
    this.#deps.onChange();
  }

  list(): Condition[] {
    return [...this.#conditions.values()].toSorted((a, b) => (a.type < b.type ? -1 : 1));
  }
}

function eventText(type: ConditionType, { status, message }: ConditionFinding): string {
  return `${type}: ${message || status}`;
}
