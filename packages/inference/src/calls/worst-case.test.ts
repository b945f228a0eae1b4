import { scanCall } from "@fairlead/dialects/calls/call-scan";
import type { Dialect } from "@fairlead/dialects/calls/dialect";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  IMAGE_TOKENS,
  type ScannedCall,
  sizeOf,
  UNKNOWN_OUTPUT_TOKENS,
  type WorstCase,
  worstCaseOf,
} from "./worst-case.ts";

type Place = ScannedCall["candidates"][number];

const CONTEXT = 200_000;
const MOST_OUTPUT = 8000;
/** What templates add to a call of any size. */
const AROUND = 1024;

function place(change: Partial<Place> = {}): Place {
  return { protocols: ["chat", "responses"], contextTokens: null, maxOutputTokens: null, ...change };
}

function scanned(
  body: string | object,
  { dialect = "chat", ...change }: Partial<Place> & { dialect?: Dialect } = {},
): ScannedCall {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return { scan: scanCall([Buffer.from(text)], dialect), dialect, candidates: [place(change)] };
}

const worstOf = (...call: Parameters<typeof scanned>): WorstCase => worstCaseOf(scanned(...call));
const user = (content: unknown): object => ({ model: "a/b", messages: [{ role: "user", content }] });
const base64 = (bytes: number): string => Buffer.alloc(bytes, "pixels").toString("base64");
const picture = (bytes: number): object => ({
  type: "image_url",
  image_url: { url: `data:image/png;base64,${base64(bytes)}` },
});

describe("the maximum input of a call", () => {
  test.each([
    ["words that end like base64", "word ".repeat(160_000) + "a".repeat(5000)],
    ["one letter", "a".repeat(800_000)],
    ["base64 in text", base64(600_000)],
    ["a data URL in text", `data:image/png;base64,${base64(600_000)}`],
  ])("is one token per byte of %s", (_name, text) => {
    for (const content of [text, [{ type: "text", text }]]) {
      const { inputTokens } = worstOf(user(content));
      expect(inputTokens).toBeGreaterThanOrEqual(text.length);
      expect(scanned(user(content)).scan.inputTokens).toBeGreaterThanOrEqual(text.length / 4);
    }
  });

  const long = `data:image/png;base64,${base64(600_000)}`;
  test.each<[string, object]>([
    [
      "the definition of a tool",
      { tools: [{ type: "function", function: { parameters: { image_url: { url: long } } } }] },
    ],
    ["a tool call's arguments", { messages: [{ tool_calls: [{ function: { arguments: { image_url: long } } }] }] }],
    ["a message itself", { messages: [{ role: "user", image_url: { url: long } }] }],
    ["content that is not a list", { messages: [{ content: { type: "image_url", image_url: { url: long } } }] }],
    ["a part of an unknown kind", { messages: [{ content: [{ type: "x", image_url: { url: long } }] }] }],
    ["metadata", { metadata: { content: [{ type: "image_url", image_url: { url: long } }] } }],
    ["a list in a list", { messages: [[{ content: [{ type: "image_url", image_url: { url: long } }] }]] }],
    ["an image with a space in it", user([{ type: "image_url", image_url: { url: `${long} ` } }])],
    [
      "an image made of words",
      user([{ type: "image_url", image_url: { url: "word ".repeat(160_000) + "a".repeat(5000) } }]),
    ],
    ["an image that is padded twice", user([{ type: "image_url", image_url: { url: `${long}==${long}` } }])],
    [
      "an image with a length that base64 cannot have",
      user([{ type: "image_url", image_url: { url: "a".repeat(800_001) } }]),
    ],
  ])("counts something that looks like an image as text in %s", (_name, body) => {
    expect(worstOf(body).inputTokens).toBeGreaterThanOrEqual(800_000);
  });

  test.each<[string, object]>([
    ["a data URL", picture(3_000_000)],
    ["a data URL with escaped slashes", picture(3_000_000)],
    ["base64 alone", { type: "input_image", image_url: base64(3_000_000) }],
    ["an address", { type: "image_url", image_url: { url: "https://example.org/cat.png" } }],
    ["an id", { type: "input_image", file_id: "file-1" }],
    ["a part without a type", { image_url: { url: `data:image/png;base64,${base64(3_000_000)}` } }],
    ["another spelling", { type: "image_url", Image_URL: { url: "https://example.org/cat.png" } }],
  ])("is that of an image, whatever its size: %s", (name, part) => {
    const text = JSON.stringify(user([part]));
    const { inputTokens } = worstOf(name.includes("escaped") ? text.replaceAll("/", "\\/") : text);
    expect(inputTokens).toBeGreaterThanOrEqual(IMAGE_TOKENS);
    expect(inputTokens).toBeLessThan(IMAGE_TOKENS + AROUND);
  });

  test("is the same however the body is split", () => {
    const bytes = Buffer.from(JSON.stringify(user([{ type: "text", text: "Hi" }, picture(60_000)])));
    const whole = worstCaseOf({ scan: scanCall([bytes], "chat"), dialect: "chat", candidates: [place()] });
    for (const size of [1, 7, 1000, 4096]) {
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
        bytes.subarray(at * size, (at + 1) * size),
      );
      expect(worstCaseOf({ scan: scanCall(pieces, "chat"), dialect: "chat", candidates: [place()] })).toEqual(whole);
    }
  });

  test("is at most the model's context, or the larger of two", () => {
    const call = scanned(user("x".repeat(3_000_000)));
    const contexts = [{ contextTokens: 1000 }, { contextTokens: CONTEXT }].map(place);
    expect(worstCaseOf({ ...call, candidates: contexts }).inputTokens).toBe(CONTEXT);
    expect(worstCaseOf({ ...call, candidates: [...contexts, place()] }).inputTokens).toBeGreaterThan(3_000_000);
  });

  const responses = { dialect: "responses" } as const;
  test.each<[string, object, { dialect?: Dialect }]>([
    ["a file", user([{ type: "file", file: { file_data: base64(100) } }]), {}],
    ["a file by its ID", user([{ type: "input_file", file_id: "file-1" }]), responses],
    ["audio", user([{ type: "input_audio", input_audio: { data: base64(100), format: "wav" } }]), {}],
    ["earlier audio", { messages: [{ role: "assistant", audio: { id: "audio_1" } }] }, {}],
    ["a part of an unknown kind", user([{ type: "hologram", hologram: "x" }]), {}],
    ["a previous response", { previous_response_id: "resp_1" }, responses],
    ["a conversation", { conversation: { id: "conv_1" } }, responses],
    ["a stored prompt", { prompt: { id: "pmpt_1" } }, responses],
    ["a stored item", { input: [{ type: "item_reference", id: "msg_1" }] }, responses],
    ["stored thinking", { input: [{ type: "reasoning", id: "rs_1", summary: [] }] }, responses],
    ["a template", { chat_template: "{% for i in range(9999) %}a{% endfor %}" }, {}],
  ])("is the model's entire context if the body has %s", (_name, body, options) => {
    expect(worstOf(body, { ...options, contextTokens: CONTEXT }).inputTokens).toBe(CONTEXT);
    expect(worstOf(body, options).inputTokens).toBeGreaterThan(1_000_000);
  });

  test.each<[string, object]>([
    ["no reference", { previous_response_id: null, prompt: null, tools: [] }],
    [
      "properties of those names in a tool",
      { tools: [{ type: "function", parameters: { file_id: {}, prompt: {}, image_url: {} } }] },
    ],
    [
      "items with IDs and content",
      { input: [{ type: "message", id: "msg_1", role: "assistant", content: [{ type: "output_text", text: "Hi" }] }] },
    ],
  ])("is only its bytes if the body has %s", (_name, body) => {
    const { inputTokens } = worstOf(body, responses);
    expect(inputTokens).toBeLessThan(JSON.stringify(body).length + AROUND + 1);
  });

  test("is only its bytes if the host itself resolves the items that it references", () => {
    const call = scanned({ input: [{ type: "item_reference", id: "msg_1" }] }, { ...responses, protocols: ["chat"] });
    const { inputTokens } = worstCaseOf(call);
    expect(inputTokens).toBeLessThan(AROUND);
    expect(worstCaseOf({ ...call, referredBytes: 5000 }).inputTokens).toBe(inputTokens + 5000);
  });

  test.each<[string, object, number]>([
    ["a tool that the upstream runs", { tools: [{ type: "web_search" }, { type: "function" }] }, 1],
    ["two of them", { tools: [{ type: "web_search" }, { type: "mcp" }] }, 2],
    ["a field that asks for a search", { web_search_options: {} }, 1],
  ])("includes another context for %s", (_name, body, contexts) => {
    const { inputTokens } = worstOf(body, { contextTokens: CONTEXT });
    expect(inputTokens).toBeGreaterThan(contexts * CONTEXT);
    expect(inputTokens).toBeLessThan(contexts * CONTEXT + 2 * AROUND);
  });
});

describe("the maximum output of a call", () => {
  test.each([
    ["nothing", "{}", MOST_OUTPUT],
    ["a limit", '{"max_tokens":10}', 10],
    ["a fraction", '{"max_tokens":7.2}', 8],
    ["an exponent", '{"max_tokens":1e3}', 1000],
    ["a limit as a string", '{"max_tokens":"5"}', 5],
    ["a limit as an escaped string", '{"max_tokens":"\\u0035"}', 5],
    ["a limit as a string with an exponent", '{"max_tokens":"1e2"}', 100],
    ["a limit as a string with an underscore", '{"max_tokens":"1_0"}', 10],
    ["a limit in other digits", '{"max_tokens":"\u0665"}', MOST_OUTPUT],
    ["a limit in words", '{"max_tokens":"ten"}', MOST_OUTPUT],
    ["null", '{"max_tokens":null}', MOST_OUTPUT],
    ["zero", '{"max_tokens":0}', MOST_OUTPUT],
    ["a negative number", '{"max_tokens":-1}', MOST_OUTPUT],
    ["true", '{"max_tokens":true}', MOST_OUTPUT],
    ["a list", '{"max_tokens":[5]}', MOST_OUTPUT],
    ["an object", '{"max_tokens":{"a":1}}', MOST_OUTPUT],
    ["more than any number", '{"max_tokens":1e400}', MOST_OUTPUT],
    ["many digits", `{"max_tokens":${"1".repeat(100)}}`, MOST_OUTPUT],
    ["a limit under an escaped name", '{"max\\u005ftokens":10}', 10],
    ["a limit under another spelling", '{"MAX_TOKENS":10}', MOST_OUTPUT],
    ["two limits", '{"max_tokens":10,"max_completion_tokens":20}', 20],
    ["two limits, one of which cannot be read", '{"max_tokens":10,"max_completion_tokens":"x"}', MOST_OUTPUT],
    ["a limit that its upstream may not know", '{"max_completion_tokens":10}', MOST_OUTPUT],
    ["a limit of the other dialect", '{"max_output_tokens":10}', MOST_OUTPUT],
    ["a limit that engines prefer", '{"max_tokens":10,"n_predict":300}', 300],
    ["no limit, as engines write it", '{"max_tokens":10,"n_predict":-1}', MOST_OUTPUT],
    ["a limit deeper down", '{"a":{"max_tokens":10}}', MOST_OUTPUT],
  ])("with %s is the most that any upstream would read", (_name, body, most) => {
    expect(worstOf(body, { maxOutputTokens: MOST_OUTPUT }).outputTokens).toBe(most);
  });

  test.each([
    ["2", 2],
    ["2.5", 3],
    ["1e1", 10],
    ['"3"', 3],
    ['"1e2"', 100],
    ['" 3 "', 3],
    ["null", 1],
    ["0", 128],
    ["-2", 128],
    ["true", 128],
    ['"many"', 128],
    ["[3]", 128],
    ["{}", 128],
  ])("counts as many choices as any upstream would read from n: %s", (n, choices) => {
    for (const name of ["n", "N", "\\u006e", "best_of"]) {
      expect(worstOf(`{"max_tokens":10,"${name}":${n}}`).outputTokens).toBe(10 * choices);
    }
  });

  test("is finite, however many choices of whatever length are requested", () => {
    for (const n of ["1e400", "9".repeat(30), '"1e300"']) {
      const { outputTokens } = worstOf(`{"max_tokens":9e300,"n":${n}}`);
      expect(outputTokens).toBe(Number.MAX_SAFE_INTEGER);
    }
  });

  test.each<[string, string, Partial<Place> & { dialect?: Dialect }, number]>([
    [
      "a provider that reads it",
      '{"max_completion_tokens":10}',
      { chat: { outputLimit: "max_completion_tokens" } },
      10,
    ],
    ["a call that is converted", '{"max_completion_tokens":10}', { protocols: ["responses"] }, 10],
    ["the responses dialect", '{"max_output_tokens":10}', { dialect: "responses" }, 10],
    ["a converted one", '{"max_output_tokens":10}', { dialect: "responses", protocols: ["chat"] }, 10],
    ["a field that this dialect does not have", '{"max_tokens":10}', { dialect: "responses" }, UNKNOWN_OUTPUT_TOKENS],
    ["the context", "{}", { contextTokens: 9000 }, 9000],
    ["the smaller of context and output", "{}", { contextTokens: 500, maxOutputTokens: 9000 }, 500],
    ["an unknown model", "{}", {}, UNKNOWN_OUTPUT_TOKENS],
  ])("is the limit of %s", (...[, body, options, most]) => {
    expect(worstOf(body, options).outputTokens).toBe(most);
  });

  test("is the maximum of all upstreams that may serve the call", () => {
    const candidates = [place({ maxOutputTokens: 100 }), place({ maxOutputTokens: 300 })];
    expect(worstCaseOf({ ...scanned("{}"), candidates }).outputTokens).toBe(300);
    expect(worstCaseOf({ ...scanned('{"max_tokens":200}'), candidates }).outputTokens).toBe(200);
  });

  test("includes a prediction in addition to the response, because rejected tokens are charged", () => {
    const prediction = { type: "content", content: "word ".repeat(100) };
    const { outputTokens, unseenTokens } = worstOf({ max_tokens: 10, prediction });
    expect(unseenTokens).toBeGreaterThanOrEqual(500);
    expect(outputTokens).toBe(10 + unseenTokens);
  });
});

describe("the token count for rate limits", () => {
  test("is an estimate with the maximum excess", () => {
    const body = { max_tokens: 5000, ...user("x".repeat(4000)) };
    const { inputTokens, outputTokens, excessTokens } = sizeOf(scanned(body));
    expect(inputTokens).toBeLessThan(1100);
    expect(outputTokens).toBe(512);
    const most = worstOf(body);
    expect(inputTokens + outputTokens + excessTokens).toBe(most.inputTokens + most.outputTokens);
  });

  test("includes only the beginning of a stream's output; the rest is counted as it arrives", () => {
    const { excessTokens } = sizeOf(scanned({ stream: true, max_tokens: 100_000, ...user("Hi") }));
    expect(excessTokens).toBeLessThan(AROUND);
  });
});

/** A part's tokens by a strict reader's count: one for each byte of text, and for a picture the most that any model counts. */
const STRICT_IMAGE_TOKENS = 48_169;
const PART_TOKENS = 4;

interface Part {
  readonly json: object;
  readonly tokens: number;
}

const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.constantFrom(
    "word ".repeat(2000) + "a".repeat(5000),
    "a".repeat(8192),
    base64(6000),
    `data:image/png;base64,${base64(6000)}`,
  ),
);
const textPart = text.map((words): Part => ({ json: { type: "text", text: words }, tokens: Buffer.byteLength(words) }));
const imagePart = fc
  .constantFrom(`data:image/png;base64,${base64(6000)}`, "https://example.org/cat.png")
  .map((url): Part => ({ json: { type: "image_url", image_url: { url } }, tokens: STRICT_IMAGE_TOKENS }));
const message = fc.oneof(
  text.map((words) => ({ json: { role: "user", content: words }, tokens: Buffer.byteLength(words) })),
  fc.array(fc.oneof(textPart, imagePart), { maxLength: 4 }).map((parts) => ({
    json: { role: "user", content: parts.map(({ json }) => json) },
    tokens: parts.reduce((sum, { tokens }) => sum + tokens, 0),
  })),
  text.map((words) => ({
    json: { role: "assistant", tool_calls: [{ function: { name: "f", arguments: { image_url: { url: words } } } }] },
    tokens: Buffer.byteLength(words),
  })),
);
const tool = text.map((words) => ({
  json: { type: "function", function: { name: "f", description: words } },
  tokens: Buffer.byteLength(words),
}));

test("for any body, no strict upstream counts more than is reserved", () => {
  const call = fc.record({
    messages: fc.array(message, { maxLength: 5 }),
    tools: fc.array(tool, { maxLength: 2 }),
    n: fc.integer({ min: 1, max: 10 }),
    limit: fc.option(fc.integer({ min: 1, max: 20_000 })),
    cuts: fc.array(fc.nat(), { maxLength: 5 }),
  });
  const property = fc.property(call, ({ messages, tools, n, limit, cuts }) => {
    const body = {
      model: "a/b",
      messages: messages.map(({ json }) => json),
      tools: tools.map(({ json }) => json),
      n,
      ...(limit === null ? {} : { max_tokens: limit }),
    };
    const bytes = Buffer.from(JSON.stringify(body));
    const at = [0, ...cuts.map((cut) => cut % bytes.length).sort((a, b) => a - b), bytes.length];
    const pieces = at.slice(1).map((end, index) => bytes.subarray(at[index], end));
    const candidates = [place({ maxOutputTokens: MOST_OUTPUT })];
    const most = worstCaseOf({ scan: scanCall(pieces, "chat"), dialect: "chat", candidates });
    const input = [...messages, ...tools].reduce((sum, { tokens }) => sum + tokens + PART_TOKENS, 0);
    expect(most.inputTokens).toBeGreaterThanOrEqual(input);
    expect(most.outputTokens).toBe(n * Math.min(limit ?? MOST_OUTPUT, MOST_OUTPUT));
  });
  fc.assert(property, { numRuns: 300 });
});
