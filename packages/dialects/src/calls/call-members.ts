import { KeyNames } from "../json/key-names.ts";
import type { CountField } from "./call-counts.ts";

/** What a member of a request means to the scan. A count is read as the `CountField` that it is named for here. */
export type CallMember = CountField | "model" | "stream" | "stream_options" | InputMember;

/** Members that count as often as they are given; all others may be given once. */
export type InputMember = "messages" | "tools" | "prediction" | "reference" | "search";

/** The members that a dialect's requests are scanned for. */
export class CallMembers {
  readonly names: KeyNames<string>;
  readonly #meanings: ReadonlyMap<string, CallMember>;

  constructor(meanings: Readonly<Record<string, CallMember>>) {
    this.names = new KeyNames(Object.keys(meanings));
    this.#meanings = new Map(Object.entries(meanings));
  }

  meaningOf(name: string): CallMember | undefined {
    return this.#meanings.get(name);
  }
}

/** For both of OpenAI's dialects: lenient upstreams read the members of one in the other. */
export const OPENAI_MEMBERS = new CallMembers({
  model: "model",
  stream: "stream",
  stream_options: "stream_options",
  n: "n",
  best_of: "best_of",
  max_tokens: "max_tokens",
  max_completion_tokens: "max_completion_tokens",
  max_output_tokens: "max_output_tokens",
  // Engines read these beside or before `max_tokens`.
  n_predict: "n_predict",
  num_predict: "num_predict",
  max_new_tokens: "max_new_tokens",
  messages: "messages",
  input: "messages",
  tools: "tools",
  prediction: "prediction",
  previous_response_id: "reference",
  conversation: "reference",
  prompt: "reference",
  chat_template: "reference",
  web_search_options: "search",
  search_parameters: "search",
  plugins: "search",
  enable_search: "search",
});
