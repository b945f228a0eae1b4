import type {
  ChatCompletionContentPart,
  ChatCompletionMessageFunctionToolCall,
} from "openai/resources/chat/completions/completions";
import type { ChatQuirks } from "../convert/bridge-call.ts";
import { joinTexts } from "../convert/responses-to-chat/responses-content-to-chat.ts";
import type { ChatMessageParam } from "../convert/wire.ts";

type Content = string | ChatCompletionContentPart[];

interface OpenAssistant {
  texts: string[];
  refusals: string[];
  readonly thoughts: string[];
  readonly calls: ChatCompletionMessageFunctionToolCall[];
}

/**
 * Collects chat messages. One assistant message contains a whole model turn: reasoning, text and calls. Separate messages make models
 * end their tool loop early (vllm-project/vllm#37167), and engines reject the history.
 */
export class MessageList {
  readonly #messages: ChatMessageParam[] = [];
  readonly #quirks: ChatQuirks;
  /** The model's turn, not yet in the list. */
  #assistant: OpenAssistant | null = null;
  /** Tool output that no tool message can contain; added after the turn's outputs. */
  #attachments: ChatCompletionContentPart[] = [];

  constructor(quirks: ChatQuirks) {
    this.#quirks = quirks;
  }

  system(role: "system" | "developer", content: Content): void {
    this.#close();
    if (this.#quirks.developerRole) {
      this.#messages.push({ role, content: content as string });
      return;
    }
    const before = this.#messages.at(-1);
    const text = joinTexts(content, "\n");
    // Templates of many models accept one system message, at the start.
    if (before?.role === "system" && typeof before.content === "string" && text !== null) {
      this.#messages[this.#messages.length - 1] = { role: "system", content: `${before.content}\n\n${text}` };
    } else {
      this.#messages.push({ role: "system", content: text ?? (content as string) });
    }
  }

  user(content: Content, extra: object): void {
    this.#close();
    this.#messages.push({ ...extra, role: "user", content });
  }

  /** The model's text, which belongs to the calls of the same turn. */
  assistant(texts: string[], refusals: string[]): void {
    const open = this.#assistant;
    if (open && open.calls.length === 0 && open.texts.length + open.refusals.length > 0) this.#close();
    const turn = this.#turn();
    turn.texts.push(...texts);
    turn.refusals.push(...refusals);
  }

  thought(text: string): void {
    if (text !== "") this.#turn().thoughts.push(text);
  }

  call(id: string, name: string, args: string): void {
    this.#turn().calls.push({ id, type: "function", function: { name, arguments: args } });
  }

  output(callId: string, content: Content): void {
    this.#closeTurn();
    const parts = typeof content === "string" ? [{ type: "text" as const, text: content }] : content;
    const texts = parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
    const others = parts.filter((part) => part.type !== "text");
    const text =
      others.length === 0 ? texts.join("\n") : [...texts, "(The other parts of the output follow.)"].join("\n");
    this.#messages.push({ role: "tool", tool_call_id: callId, content: text });
    if (others.length > 0) this.#attachments.push({ type: "text", text: `Output of the call ${callId}:` }, ...others);
  }

  finish(): readonly ChatMessageParam[] {
    this.#close();
    return this.#messages;
  }

  #turn(): OpenAssistant {
    this.#closeAttachments();
    this.#assistant ??= { texts: [], refusals: [], thoughts: [], calls: [] };
    return this.#assistant;
  }

  #close(): void {
    this.#closeTurn();
    this.#closeAttachments();
  }

  #closeAttachments(): void {
    if (this.#attachments.length > 0) this.#messages.push({ role: "user", content: this.#attachments });
    this.#attachments = [];
  }

  #closeTurn(): void {
    const turn = this.#assistant;
    this.#assistant = null;
    if (!turn || turn.texts.length + turn.refusals.length + turn.calls.length === 0) return;
    const thinking = this.#quirks.thinkingField;
    this.#messages.push({
      role: "assistant",
      content: turn.texts.length > 0 ? turn.texts.join("") : null,
      ...(turn.refusals.length > 0 ? { refusal: turn.refusals.join("") } : {}),
      ...(turn.calls.length > 0 ? { tool_calls: turn.calls } : {}),
      ...(thinking && turn.thoughts.length > 0 ? { [thinking]: turn.thoughts.join("\n\n") } : {}),
    });
  }
}
