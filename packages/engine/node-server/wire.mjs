/** The two dialects that the server speaks, as objects of the chat-completions format: `chat` and `completion`. */

export class RequestError extends Error {
  constructor(status, message, type = "invalid_request_error") {
    super(message);
    this.status = status;
    this.type = type;
  }
}

export const errorBody = (error) => ({
  error: { message: error.message, type: error.type ?? "server_error", code: error.status ?? 500 },
});

export const modelList = (model) => ({
  object: "list",
  data: [{ id: model, object: "model", created: 0, owned_by: "node-llama-cpp" }],
});

const chat = {
  isChat: true,
  idPrefix: "chatcmpl-",
  object: "chat.completion",
  chunkObject: "chat.completion.chunk",
  check: (body) => Array.isArray(body.messages) && body.messages.length > 0,
  needs: "messages",
  choice: (text, reason) => ({ index: 0, message: { role: "assistant", content: text }, finish_reason: reason }),
  opening: { index: 0, delta: { role: "assistant", content: "" }, finish_reason: null },
  piece: (text) => ({ index: 0, delta: { content: text }, finish_reason: null }),
  ending: (reason) => ({ index: 0, delta: {}, finish_reason: reason }),
};

const completion = {
  isChat: false,
  idPrefix: "cmpl-",
  object: "text_completion",
  chunkObject: "text_completion",
  check: (body) => typeof body.prompt === "string",
  needs: "prompt",
  choice: (text, reason) => ({ index: 0, text, logprobs: null, finish_reason: reason }),
  opening: null,
  piece: (text) => ({ index: 0, text, finish_reason: null }),
  ending: (reason) => ({ index: 0, text: "", finish_reason: reason }),
};

const DIALECTS = { "POST /v1/chat/completions": chat, "POST /v1/completions": completion };

export function dialectOf(route) {
  const dialect = DIALECTS[route];
  if (!dialect) throw new RequestError(404, "File Not Found", "not_found_error");
  return dialect;
}

export function parseBody(text, dialect) {
  let body;
  try {
    body = JSON.parse(text);
  } catch (error) {
    throw new RequestError(400, error.message);
  }
  if (!dialect.check(body)) throw new RequestError(400, `'${dialect.needs}' is required`);
  return body;
}
