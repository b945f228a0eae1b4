/** Inputs of a conversion from its caller, and values derived from them. No clock and no random IDs. */

/** Differences between chat upstreams. Set by provider presets; the defaults suit engines. */
export interface ChatQuirks {
  /** The field that limits output. An upstream that does not know the field generates without a limit. */
  readonly outputLimit?: "max_tokens" | "max_completion_tokens";
  /** Whether it supports the role `developer` and several system messages. */
  readonly developerRole?: boolean;
  /** The assistant message field that accepts earlier thinking; absent if unsupported. */
  readonly thinkingField?: "reasoning_content" | "reasoning";
}

export interface BridgeCall {
  /** Unique and printable, `req_…`. All IDs of the response derive from it, so a stream and a complete response use the same ones. */
  readonly id: string;
  /** Unix seconds. */
  readonly createdAt: number;
  /** The upstream's name for the model. */
  readonly model: string;
  /** The caller's name for it, `<provider>/<model>`: used in the response, whatever the upstream sends. */
  readonly calledModel: string;
  readonly chat?: ChatQuirks;
}

type IdKind = "resp" | "chatcmpl" | "msg" | "rs" | "fc" | "ctc" | "call";

/** Generates the IDs of one response. */
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

  /** @param index of the item in the output, or of the call. */
  item(kind: IdKind, index: number): string {
    return `${kind}_${this.#seed}_${index}`;
  }
}
