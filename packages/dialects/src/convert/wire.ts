import type {
  ChatCompletionChunk,
  ChatCompletionCreateParamsBase,
  ChatCompletionMessage,
  ChatCompletionMessageParam,
  ChatCompletion as OpenAiChatCompletion,
} from "openai/resources/chat/completions/completions";
import type {
  Response,
  ResponseCreateParamsBase,
  ResponseErrorEvent,
  ResponseFunctionCallArgumentsDoneEvent,
  ResponseStreamEvent,
  ResponseUsage,
} from "openai/resources/responses/responses";

/**
 * Types of both dialects, from the openai package. Where it requires less than OpenAI's specification or Open Responses, the
 * difference is declared here. Types only: none of the package's code runs.
 */

export type JsonObject = Readonly<Record<string, unknown>>;

/** Extension of the chat dialect by engines: the model's thinking. */
interface Thinking {
  readonly reasoning_content?: string;
  readonly reasoning?: string;
}

export type ChatMessageParam = ChatCompletionMessageParam & Thinking;

/** Fields without a counterpart are passed through as submitted. */
export type ChatRequest = Omit<ChatCompletionCreateParamsBase, "messages"> & {
  readonly messages: readonly ChatMessageParam[];
};

export type ResponsesRequest = ResponseCreateParamsBase;

type ChatMessage = ChatCompletionMessage & Thinking;
type ChatChoice = Omit<OpenAiChatCompletion.Choice, "message"> & { readonly message: ChatMessage };
export type ChatCompletion = Omit<OpenAiChatCompletion, "choices"> & { readonly choices: readonly ChatChoice[] };

export type ChatFinish = ChatCompletionChunk.Choice["finish_reason"];
export type ChatDelta = ChatCompletionChunk.Choice.Delta & {
  readonly reasoning_content?: string;
  readonly annotations?: readonly ChatCompletionMessage.Annotation[];
};
type ChatChunkChoice = Omit<ChatCompletionChunk.Choice, "delta"> & { readonly delta: ChatDelta };
export type ChatChunk = Omit<ChatCompletionChunk, "choices"> & { readonly choices: readonly ChatChunkChoice[] };

/** An error in either dialect, in a body or a stream: always OpenAI's four fields and this host's two (docs/errors.md). */
export interface WireError {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | null;
  readonly source: "fairlead" | "provider";
  readonly requestId: string;
}

export type ChatEvent = ChatChunk | { readonly error: WireError };

/** Open Responses requires all of these, even if null. */
export type ResponseObject = Omit<Response, "access_programs" | "output_text" | "usage"> & {
  readonly status: "in_progress" | "completed" | "incomplete" | "failed";
  readonly usage: ResponseUsage | null;
  readonly store: boolean;
  readonly presence_penalty: number;
  readonly frequency_penalty: number;
};

type LifecycleType =
  | "response.created"
  | "response.queued"
  | "response.in_progress"
  | "response.completed"
  | "response.incomplete"
  | "response.failed";

interface LifecycleEvent {
  readonly type: LifecycleType;
  readonly sequence_number: number;
  readonly response: ResponseObject;
}

/** OpenAI's specification requires the name, but the package's type lacks it. */
type ArgumentsDone = ResponseFunctionCallArgumentsDoneEvent & { readonly name: string };

/** Both flat and nested, because some clients read only one of the two forms. */
type ErrorEvent = ResponseErrorEvent & { readonly error: WireError };

export type ResponseEvent =
  | Exclude<
      ResponseStreamEvent,
      { readonly type: LifecycleType } | ResponseErrorEvent | ResponseFunctionCallArgumentsDoneEvent
    >
  | LifecycleEvent
  | ArgumentsDone
  | ErrorEvent;

type WithoutNumber<T> = T extends unknown ? Omit<T, "sequence_number"> : never;

/** Takes an event; the stream assigns its number. */
export type Emit = (event: WithoutNumber<ResponseEvent>) => void;
