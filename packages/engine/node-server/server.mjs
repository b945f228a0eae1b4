// The demo engine for machines that reach nothing but npm: the same model file behind node-llama-cpp. See ../README.md.
import { randomUUID } from "node:crypto";
import http from "node:http";
import path from "node:path";
import { parseArgs } from "node:util";
import { loadGenerator } from "./generator.mjs";
import { dialectOf, errorBody, modelList, parseBody, RequestError } from "./wire.mjs";

const { values: settings } = parseArgs({
  options: {
    model: { type: "string", default: path.join(import.meta.dirname, "../models/tinychat-6m-q8_0.gguf") },
    port: { type: "string", default: "8080" },
    host: { type: "string", default: "127.0.0.1" },
    alias: { type: "string", default: "tinychat-6m" },
    parallel: { type: "string", default: "4" },
    threads: { type: "string", default: "1" },
    "api-key": { type: "string" },
  },
});

function sendJson(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

async function readText(request) {
  let text = "";
  for await (const piece of request.setEncoding("utf8")) text += piece;
  return text;
}

async function streamAnswer({ response, head, dialect, body, run }) {
  const send = (choices, more) =>
    response.write(`data: ${JSON.stringify({ ...head, object: dialect.chunkObject, choices, ...more })}\n\n`);
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  if (dialect.opening) send([dialect.opening]);
  const { finishReason, usage } = await run((text) => send([dialect.piece(text)]));
  send([dialect.ending(finishReason)]);
  if (body.stream_options?.include_usage) send([], { usage });
  response.end("data: [DONE]\n\n");
}

async function answer(generator, request, response) {
  const dialect = dialectOf(`${request.method} ${request.url.split("?")[0]}`);
  const body = parseBody(await readText(request), dialect);
  const left = new AbortController();
  response.on("close", () => left.abort());
  const run = (onText) => generator.generate({ body, chat: dialect.isChat, signal: left.signal, onText });
  const created = Math.floor(Date.now() / 1000);
  const head = { id: dialect.idPrefix + randomUUID(), object: dialect.object, created, model: settings.alias };
  if (body.stream) return streamAnswer({ response, head, dialect, body, run });
  const { text, finishReason, usage } = await run();
  sendJson(response, 200, { ...head, choices: [dialect.choice(text, finishReason)], usage });
}

async function handle(generator, request, response) {
  const route = `${request.method} ${request.url.split("?")[0]}`;
  if (route === "GET /health") return sendJson(response, 200, { status: "ok" });
  const key = settings["api-key"];
  if (key && request.headers.authorization !== `Bearer ${key}`) {
    throw new RequestError(401, "Invalid API Key", "authentication_error");
  }
  if (route === "GET /v1/models") return sendJson(response, 200, modelList(settings.alias));
  return answer(generator, request, response);
}

const generator = await loadGenerator({
  modelPath: settings.model,
  parallel: Number(settings.parallel),
  threads: Number(settings.threads),
});
const server = http.createServer((request, response) => {
  handle(generator, request, response).catch((error) => {
    if (response.headersSent) response.destroy();
    else sendJson(response, error.status ?? 500, errorBody(error));
  });
});
server.listen(Number(settings.port), settings.host, () => {
  process.stdout.write(`listening on ${settings.host}:${server.address().port} with ${settings.alias}\n`);
});
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => process.exit(0));
