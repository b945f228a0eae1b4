import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { scanCall } from "./call-scan.ts";
import type { Dialect } from "./dialect.ts";
import { asksForUsage, bodyForUpstream, type SubmittedBody } from "./submitted-body.ts";

const MODEL = 'm/"x"';

function submitted(body: string | readonly Buffer[], dialect: Dialect = "chat"): SubmittedBody {
  const bytes = typeof body === "string" ? [Buffer.from(body)] : body;
  return { bytes, scan: scanCall(bytes, dialect), dialect };
}

const sent = (body: string, dialect: Dialect = "chat"): string =>
  Buffer.concat(bodyForUpstream(submitted(body, dialect), "m")).toString();

/** Cuts a Buffer at the given places, which may leave empty pieces. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [0, ...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end));
}

/** One way among those that JSON allows to write this. */
const space = fc.string({ unit: fc.constantFrom(" ", "\n", "\r", "\t"), maxLength: 3 });
const bigNumber = fc
  .tuple(fc.constantFrom("", "-"), fc.bigInt({ min: 0n, max: 10n ** 40n }), fc.constantFrom("", ".50", "e400", "E-7"))
  .map((parts) => parts.join(""));
const escaped = fc
  .string({ unit: "binary", maxLength: 12 })
  .map(
    (text) =>
      `"${Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`).join("")}"`,
  );
const plain = fc.string({ unit: "binary" }).map((text) => JSON.stringify(text));
const deep = fc.nat({ max: 28 }).map((depth) => `${'[{"model":'.repeat(depth)}0${"}]".repeat(depth)}`);
const value = fc.oneof(
  bigNumber,
  escaped,
  plain,
  deep,
  fc.jsonValue().map((json) => JSON.stringify(json)),
);
/** Members of no concern to us; the same name may come twice. */
const member = fc
  .tuple(fc.constantFrom('"seed"', '"messages"', '"tools"', '"m\\u006fdels"', '"x"'), space, space, value)
  .map(([name, before, after, text]) => `${name}${before}:${after}${text}`);

/** A member of ours as it is submitted, and as the upstream gets it; null: it is not there. */
type Own = readonly [submitted: string, sent: string] | null;

const VALUE = JSON.stringify(MODEL);
const modelMember = fc.constantFrom<Own>(
  null,
  ['"model":"n/m"', `"model":${VALUE}`],
  ['"mod\\u0065l" : "n\\/m"', `"mod\\u0065l" : ${VALUE}`],
  ['"model"\t:\n"n/m"', `"model"\t:\n${VALUE}`],
);
/** Sent so for a stream; else as submitted. */
const optionsMember = fc.constantFrom<Own>(
  null,
  ['"stream_options":null', '"stream_options":{"include_usage":true}'],
  ['"stream_options" : { }', '"stream_options" : {"include_usage":true }'],
  [
    '"stream_options":{"include_usage":false,"include_obfuscation":true}',
    '"stream_options":{"include_usage":true,"include_obfuscation":true}',
  ],
  [
    '"stream_options":{"x":{"include_usage":true}}',
    '"stream_options":{"include_usage":true,"x":{"include_usage":true}}',
  ],
  ['"stream_options":{"include_usage" : true }', '"stream_options":{"include_usage" : true }'],
);

interface Written {
  readonly text: string;
  readonly sent: string;
}

const call: fc.Arbitrary<Written> = fc
  .record({
    before: fc.array(member, { maxLength: 4 }),
    after: fc.array(member, { maxLength: 4 }),
    model: modelMember,
    options: optionsMember,
    stream: fc.constantFrom<Own>(null, ['"stream":true', '"stream":true'], ['"stream": false', '"stream": false']),
    mark: fc.constantFrom("", "\ufeff"),
    space,
  })
  .map(({ before, after, model, options, stream, mark, space: gap }) => {
    const isStream = stream?.[0] === '"stream":true';
    const others = (members: readonly string[]): Own[] => members.map((text) => [text, text]);
    const asked: Own = options === null || isStream ? options : [options[0], options[0]];
    const members = [...others(before), model, asked, stream, ...others(after)].filter((each) => each !== null);
    const put = [
      ...(model === null ? [`"model":${VALUE}`] : []),
      ...(options === null && isStream ? ['"stream_options":{"include_usage":true}'] : []),
    ];
    const comma = members.length === 0 ? "" : ",";
    const write = (inserted: string, at: 0 | 1): string =>
      `${at === 0 ? mark : ""}${gap}{${inserted}${gap}${members.map((each) => each[at]).join(`${gap},${gap}`)}${gap}}${gap}`;
    return { text: write("", 0), sent: write(put.map((text) => text + comma).join(""), 1) };
  });

describe("a body sent to an upstream", () => {
  test("differs only in the model name and the usage option", () => {
    const property = fc.property(call, fc.array(fc.nat(), { maxLength: 20 }), ({ text, sent: wanted }, places) => {
      const body = submitted(cut(Buffer.from(text), places));
      expect(Buffer.concat(bodyForUpstream(body, MODEL)).toString()).toBe(wanted);
    });
    fc.assert(property, { numRuns: 2000 });
  });

  test.each([
    ['{"model":"n/m"}', '{"model":"m"}'],
    ["{}", '{"model":"m"}'],
    ["{ }", '{"model":"m" }'],
    ['{"a":1}', '{"model":"m","a":1}'],
    ['\ufeff {"a":1}', ' {"model":"m","a":1}'],
    ['{"model":null,"a":1}', '{"model":"m","a":1}'],
    ['\ufeff{"a":1,"model": null }', '{"a":1,"model": "m" }'],
    ['{"stream":false,"model":"n/m"}', '{"stream":false,"model":"m"}'],
    ['{"stream":true,"model":"n/m"}', '{"stream_options":{"include_usage":true},"stream":true,"model":"m"}'],
    ['{"stream":true}', '{"model":"m","stream_options":{"include_usage":true},"stream":true}'],
    [
      '{"stream_options": {"a":1},"stream":true,"model":"n/m"}',
      '{"stream_options": {"include_usage":true,"a":1},"stream":true,"model":"m"}',
    ],
    [
      '{"model":"n/m","stream":true,"stream_options":{ }}',
      '{"model":"m","stream":true,"stream_options":{"include_usage":true }}',
    ],
    [
      '{"model":"n/m","stream":true,"stream_options":null}',
      '{"model":"m","stream":true,"stream_options":{"include_usage":true}}',
    ],
    [
      '{"model":"n/m","stream":true,"stream_options":{"include_usage": null}}',
      '{"model":"m","stream":true,"stream_options":{"include_usage": true}}',
    ],
  ])("is edited in place: %s", (before, after) => {
    expect(sent(before)).toBe(after);
  });

  test("keeps a caller's own usage option, and is not changed in the responses dialect", () => {
    const asked = '{"model":"m","stream":true,"stream_options":{"include_usage" : true}}';
    expect(sent(asked)).toBe(asked);
    const response = '{"model":"m","stream":true,"stream_options":{"include_obfuscation":false}}';
    expect(sent(response, "responses")).toBe(response);
    expect(asksForUsage(submitted(response, "responses"))).toBe(true);
  });

  test("of 20 MB keeps every byte, and the pieces in which it arrived", () => {
    const head = Buffer.from('{"messages":[{"role":"user","content":"');
    const pieces = Array.from({ length: 320 }, (_, at) => Buffer.alloc(65_536, String.fromCharCode(97 + (at % 26))));
    const bytes = [head, ...pieces, Buffer.from('"}],"seed":12345678901234567890123,"model":"n/m"}')];
    const out = bodyForUpstream(submitted(bytes), "m");
    expect(pieces.every((piece) => out.includes(piece))).toBe(true);
    expect(Buffer.concat(out).equals(Buffer.from(Buffer.concat(bytes).toString().replace("n/m", "m")))).toBe(true);
  });
});
