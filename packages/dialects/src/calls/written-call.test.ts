import { DomainError } from "@fairlead/protocol/errors";
import { DIALECTS } from "@fairlead/protocol/providers";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { JsonObject } from "../convert/wire.ts";
import { parseExact } from "../json/exact-json.ts";
import { scanCall } from "./call-scan.ts";
import { writeCall } from "./written-call.ts";

const BASE64 = "QUJD".repeat(1500);

/** Keys in the spellings that some server takes for them. */
const spelt = (...names: readonly string[]): fc.Arbitrary<string> =>
  fc
    .tuple(fc.constantFrom(...names), fc.constantFrom("exact", "exact", "upper", "title", "folded"))
    .map(([name, spelling]) => {
      if (spelling === "upper") return name.toUpperCase();
      if (spelling === "title") return name.slice(0, 1).toUpperCase() + name.slice(1);
      return spelling === "folded" ? name.replace("s", "ſ").replace("k", "\u212a") : name;
    });

const scalar = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, 0, -1, 1, 2, 2.5, 1e21, "", "5", " 5 ", "1_000", "\\u0035", "\n7", "x"),
  fc.constantFrom(
    BASE64,
    `data:image/png;base64,${BASE64}`,
    `${BASE64}\\/`,
    `${BASE64}\\`,
    `${BASE64}"`,
    "y".repeat(5000),
  ),
  fc.string({ unit: "binary", maxLength: 5 }),
);
const TYPES = [
  "text",
  "input_text",
  "image_url",
  "Input_Image",
  "input_file",
  "file",
  "thinking",
  "reasoning",
  "custom",
];
const ITEM_TYPES = ["function", "item_reference", "image_generation_call", "computer_call_output", "web_search"];
const type = fc.constantFrom<unknown>(...TYPES, ...ITEM_TYPES, "video_url", null, 5, {});
const object = (key: fc.Arbitrary<string>, value: fc.Arbitrary<unknown>): fc.Arbitrary<JsonObject> =>
  fc
    .array(fc.tuple(key, value), { maxLength: 4 })
    .map(
      (members) =>
        JSON.parse(
          `{${members.map(([name, member]) => `${JSON.stringify(name)}:${JSON.stringify(member)}`).join()}}`,
        ) as JsonObject,
    );

const medium = fc.oneof(scalar, object(spelt("url", "data", "file_data", "id"), scalar));
const partKeys = spelt(
  "type",
  "text",
  "image_url",
  "image",
  "file_id",
  "source",
  "file",
  "file_data",
  "input_audio",
  "__proto__",
  "1",
);
const part = fc.oneof(
  scalar,
  { weight: 3, arbitrary: object(partKeys, fc.oneof(medium, type)) },
  {
    weight: 3,
    arbitrary: fc.tuple(type, partKeys, medium).map(([given, key, value]) => ({ type: given, [key]: value })),
  },
  fc.record({ type, text: scalar, file_data: medium }),
);
const content = fc.oneof(scalar, fc.array(part, { maxLength: 3 }), object(partKeys, medium));
const messageKeys = spelt("role", "type", "content", "output", "audio", "id", "name");
const message = fc.oneof(
  scalar,
  fc.record({ type, id: scalar }),
  { weight: 2, arbitrary: object(messageKeys, fc.oneof(content, type)) },
  { weight: 6, arbitrary: fc.record({ role: fc.constant("user"), content: fc.array(part, { maxLength: 3 }) }) },
);
const tool = fc.oneof(scalar, object(spelt("type", "name"), fc.oneof(type, scalar)));
const options = fc.oneof(scalar, object(spelt("include_usage", "other"), fc.oneof(fc.boolean(), scalar)));

const members = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.tuple(
      spelt("messages", "input"),
      fc.oneof(scalar, fc.array(message, { minLength: 1, maxLength: 4 })),
    ),
  },
  fc.tuple(spelt("tools"), fc.oneof(scalar, fc.array(tool, { maxLength: 3 }))),
  fc.tuple(fc.constant("stream"), fc.constantFrom<unknown>(true, false, null, 1)),
  fc.tuple(fc.constant("stream_options"), options),
  fc.tuple(spelt("model", "stream", "stream_options"), scalar),
  fc.tuple(
    spelt("n", "best_of", "max_tokens", "max_completion_tokens", "n_predict"),
    fc.oneof(scalar, fc.array(scalar)),
  ),
  fc.tuple(spelt("web_search_options", "plugins", "previous_response_id", "prompt", "prediction"), content),
  fc.tuple(fc.oneof(fc.constantFrom("1", "__proto__"), fc.string({ unit: "binary", maxLength: 12 })), scalar),
);
/** As it comes from a parser: the last of several members of one name counts. */
const body = fc
  .array(members, { maxLength: 4 })
  .map(
    (given) =>
      parseExact(
        `{${given.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join()}}`,
      ) as JsonObject,
  );

function resultOf<T>(work: () => T): T | DomainError {
  try {
    return work();
  } catch (error) {
    if (error instanceof DomainError) return error;
    throw error;
  }
}

describe("a body that is written by the host", () => {
  test("has the same description as from a scan, and is rejected if a scan rejects it", () => {
    const dialects = fc.constantFrom(...DIALECTS);
    const property = fc.property(
      fc.string({ minLength: 1, maxLength: 20 }),
      body,
      dialects,
      (model, given, dialect) => {
        const plain = Buffer.from(JSON.stringify({ ...given, model }));
        const scanned = resultOf(() => scanCall([plain], dialect));
        const written = resultOf(() => writeCall(model, given, dialect));
        if (written instanceof DomainError || scanned instanceof DomainError) {
          expect(written).toMatchObject({ code: "invalid_request" });
          expect(scanned).toMatchObject({ code: "invalid_request" });
          return;
        }
        expect(written.scan).toEqual(scanCall([written.bytes], dialect));
        expect(written.scan.input).toEqual(scanned.input);
        expect(JSON.parse(written.bytes.toString())).toEqual(JSON.parse(plain.toString()));
      },
    );
    fc.assert(property, { numRuns: 2000 });
  });

  test("preserves numbers that a double cannot represent", () => {
    const given = parseExact('{"seed":9223372036854775807,"max_tokens":1e400,"messages":[]}') as JsonObject;
    const { bytes, scan } = writeCall("a/b", given, "chat");
    expect(bytes.toString()).toBe('{"model":"a/b","seed":9223372036854775807,"max_tokens":1e400,"messages":[]}');
    expect(scan).toEqual(scanCall([bytes], "chat"));
  });
});
