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
 * The shapes of both dialects, as the openai package types them. Where that package asks for less than OpenAI's document or
 * Open Responses do, the difference is stated here; nothing else of it is used, and nothing of it runs.
 */

export type JsonObject = Readonly<Record<string, unknown>>;

/** What engines add to the chat dialect: the model's thinking. */
interface Thinking {
  readonly reasoning_content?: string;
  readonly reasoning?: string;
}

export type ChatMessageParam = ChatCompletionMessageParam & Thinking;

/** Fields without a counterpart ride along as they were submitted. */
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

/** An error of either dialect, whole or in a stream: OpenAI's four keys, always, and this host's two (design §4). */
export interface WireError {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | null;
  readonly source: "fairlead" | "provider";
  readonly requestId: string;
}

export type ChatEvent = ChatChunk | { readonly error: WireError };

/** Open Responses requires every one of these, null or not (research: its field table). */
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

/** OpenAI's document requires the name, and its package's type lacks it. */
type ArgumentsDone = ResponseFunctionCallArgumentsDoneEvent & { readonly name: string };

/** Flat and nested at once: some clients see only the one form, some only the other. */
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

/** Takes an event that its stream will number. */
export type Emit = (event: WithoutNumber<ResponseEvent>) => void;
