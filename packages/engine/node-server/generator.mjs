import { getLlama, LlamaChat, LlamaCompletion } from "node-llama-cpp";

const DEFAULT_TEMPERATURE = 0.8;

/** Loads a model and answers with a generator of at most `parallel` answers at once; more wait in line. */
export async function loadGenerator({ modelPath, parallel, threads }) {
  const llama = await getLlama({ gpu: false, build: "never", logLevel: "error" });
  const model = await llama.loadModel({ modelPath });
  const context = await model.createContext({ contextSize: model.trainContextSize, sequences: parallel, threads });
  const sequences = pool(Array.from({ length: parallel }, () => context.getSequence()));
  return { generate: (request) => generate(sequences, request) };
}

function pool(free) {
  const waiting = [];
  return {
    take: () => (free.length > 0 ? Promise.resolve(free.pop()) : new Promise((resolve) => waiting.push(resolve))),
    give: (item) => {
      const next = waiting.shift();
      if (next) next(item);
      else free.push(item);
    },
  };
}

/**
 * @param request `{ body, chat, signal, onText }`: `chat` tells messages from a plain prompt, `onText` gets each piece.
 * @returns `{ text, finishReason, usage }`
 */
async function generate(sequences, { body, chat, signal, onText }) {
  const sequence = await sequences.take();
  try {
    await sequence.clearHistory();
    const before = sequence.tokenMeter.getState();
    const options = generationOptions(body, signal, onText);
    const { response, metadata } = await (chat
      ? answer(sequence, body.messages, options)
      : complete(sequence, body.prompt, options));
    const finishReason = metadata.stopReason === "maxTokens" ? "length" : "stop";
    return { text: response, finishReason, usage: usageOf(sequence.tokenMeter.diff(before)) };
  } finally {
    sequences.give(sequence);
  }
}

function generationOptions(body, signal, onTextChunk) {
  return {
    signal,
    stopOnAbortSignal: true,
    onTextChunk,
    maxTokens: body.max_completion_tokens ?? body.max_tokens,
    temperature: body.temperature ?? DEFAULT_TEMPERATURE,
    topP: body.top_p,
    seed: body.seed,
    customStopTriggers: body.stop === undefined || body.stop === null ? undefined : [body.stop].flat(),
  };
}

async function answer(contextSequence, messages, options) {
  const chat = new LlamaChat({ contextSequence, autoDisposeSequence: false });
  try {
    return await chat.generateResponse([...messages.map(historyItem), { type: "model", response: [] }], options);
  } finally {
    chat.dispose({ disposeSequence: false });
  }
}

async function complete(contextSequence, prompt, options) {
  const completion = new LlamaCompletion({ contextSequence, autoDisposeSequence: false });
  try {
    return await completion.generateCompletionWithMeta(prompt, options);
  } finally {
    completion.dispose({ disposeSequence: false });
  }
}

function historyItem({ role, content }) {
  const text = Array.isArray(content) ? content.map((part) => part.text ?? "").join("") : (content ?? "");
  if (role === "assistant") return { type: "model", response: [text] };
  return { type: role === "user" ? "user" : "system", text };
}

function usageOf({ usedInputTokens, usedOutputTokens }) {
  return {
    prompt_tokens: usedInputTokens,
    completion_tokens: usedOutputTokens,
    total_tokens: usedInputTokens + usedOutputTokens,
  };
}
