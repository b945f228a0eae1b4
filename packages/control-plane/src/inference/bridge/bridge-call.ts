/** What the caller of the bridge knows of a call, and what the bridge makes of that. No clock and no ids of its own. */

/** Where upstreams of the chat dialect differ. A provider's preset sets it; the defaults suit engines. */
export interface ChatQuirks {
  /** What limits the answer. An upstream that does not know the name given would answer without any limit. */
  readonly outputLimit?: "max_tokens" | "max_completion_tokens";
  /** Whether it knows the role `developer`, and takes several system messages. */
  readonly developerRole?: boolean;
  /** The field of an assistant message in which it takes earlier thinking back; absent: it does not. */
  readonly thinkingField?: "reasoning_content" | "reasoning";
}

export interface BridgeCall {
  /** Unique and printable, `req_…`. Every id of the answer is derived from it, so a stream names what the whole answer names. */
  readonly id: string;
  /** Unix seconds. */
  readonly createdAt: number;
  /** The name that the upstream knows the model by. */
  readonly model: string;
  readonly chat?: ChatQuirks;
}

type IdKind = "resp" | "chatcmpl" | "msg" | "rs" | "fc" | "ctc" | "call";

/** Makes the ids of one answer. */
export class AnswerIds {
  readonly requestId: string;
  readonly #seed: string;

  /** @param requestId a call's `id`. */
  constructor(requestId: string) {
    this.requestId = requestId;
    this.#seed = requestId.replace(/^[a-z]+_/, "");
  }

  answer(kind: "resp" | "chatcmpl"): string {
    return `${kind}${kind === "resp" ? "_" : "-"}${this.#seed}`;
  }

  /** @param index the item's place in the output, or the call's. */
  item(kind: IdKind, index: number): string {
    return `${kind}_${this.#seed}_${index}`;
  }
}
