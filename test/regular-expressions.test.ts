import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type CallExpression, type NewExpression, parseSync, Visitor } from "oxc-parser";
import { isSafe } from "redos-detector";
import { expect, test } from "vitest";

const root = new URL("..", import.meta.url).pathname;

interface Found {
  readonly file: string;
  readonly source: string;
}

/** Not proven by the check, and linear all the same, or never given input from outside. */
const ALLOWED: readonly (readonly [file: string, source: string, reason: string])[] = [
  [
    "packages/dialects/src/json/exact-json.ts",
    String.raw`/\s*:/y`,
    "sticky: each run of white space is read once, after the number before it",
  ],
  [
    "packages/dialects/src/json/exact-json.ts",
    String.raw`/-?\d[\d.]{15,}(?:[eE][+-]?\d+)?|-?\d[\d.]{0,14}[eE][+-]?\d{3,}/g`,
    "the first alternative takes every longer run at once, and the second is of bounded length",
  ],
  ["packages/demo-agent/src/config.ts", String.raw`/\/+$/`, "an address that the platform sets for its own container"],
  [
    "packages/daemon/src/reconcile/engine-facts.ts",
    String.raw`/:[^/:]*$/`,
    "the class excludes the colon at which a match begins",
  ],
  ["packages/cli/src/gateway/local-caller.ts", String.raw`/:\d+$/`, "digits exclude the colon at which a match begins"],
  [
    "packages/daemon/src/update/install-layout.ts",
    String.raw`/^(\/.+)\/versions\/([^/]+)\/lib\/daemon\.js$/`,
    "anchored; the path of our own program",
  ],
  [
    "packages/control-plane/src/access/keys/key-limits.ts",
    String.raw`/^(?:[^*]+|[^*/]+\/\*)$/`,
    "anchored; two alternatives, each read once",
  ],
  [
    "packages/control-plane/src/models/providers/provider-config.ts",
    String.raw`/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g`,
    "the class excludes the hyphens at which a match begins",
  ],
  [
    "packages/dialects/src/chat/chat-events.ts",
    String.raw`/"(?:content|reasoning_content|reasoning|refusal|arguments|name)"\s*:\s*"[^"]/`,
    "white space excludes the quotes between which a match begins",
  ],
  [
    "packages/control-plane/src/http/api-document.ts",
    String.raw`/"#\/components\/schemas\/([^"]+)"/g`,
    "the class excludes the quote at which a match begins; our own document",
  ],
  [
    "packages/control-plane/src/access/audit/audit.ts",
    String.raw`/\b(?:fl[kbi]_|eyJ)[\w.~+/=-]{16,}/g`,
    "a match fails within sixteen characters or not at all",
  ],
  [
    "packages/cli/src/chat/chat-loop.ts",
    String.raw`/^(\/[a-z]+)(?:\s+([\s\S]*))?$/`,
    "anchored; typed by the person who runs the program",
  ],
];

/** Expressions that are put together when the program runs, which this test cannot read. */
const COMPOSED: Readonly<Record<string, string>> = {
  "packages/control-plane/src/access/keys/key-secret.ts": "fixed lengths",
  "packages/control-plane/src/people/one-time-links/one-time-link.ts": "a fixed length",
  "packages/protocol/src/values/ids.ts": "fixed lengths",
  "packages/protocol/src/values/image-reference.ts": "512 characters at most",
};

function find(): { readonly literals: readonly Found[]; readonly composed: ReadonlySet<string> } {
  const literals: Found[] = [];
  const composed = new Set<string>();
  const files = globSync("packages/*/src/**/*.ts", { cwd: root });
  for (const file of files.filter((path) => !/\.(test|contract|fixture)\.ts$|\/testing\//.test(path))) {
    const onComposed = ({ callee }: NewExpression | CallExpression): void => {
      if (callee.type === "Identifier" && callee.name === "RegExp") composed.add(file);
    };
    new Visitor({
      Literal(node) {
        if ("regex" in node) literals.push({ file, source: `/${node.regex.pattern}/${node.regex.flags}` });
      },
      NewExpression: onComposed,
      CallExpression: onComposed,
    }).visit(parseSync(file, readFileSync(join(root, file), "utf8")).program);
  }
  return { literals, composed };
}

function isProvenLinear(source: string): boolean {
  const end = source.lastIndexOf("/");
  return isSafe(new RegExp(source.slice(1, end), source.slice(end + 1))).safe;
}

/** The proofs are pure computation: half a minute alone, more on a busy machine. */
test("every regular expression in a program runs in linear time on any input", () => {
  const { literals, composed } = find();
  expect(literals.length).toBeGreaterThan(100);
  const allowed = new Set(ALLOWED.map(([file, source]) => `${file} ${source}`));
  const checked = literals.filter(({ file, source }) => !allowed.has(`${file} ${source}`));
  const refused = new Set(
    [...new Set(checked.map(({ source }) => source))].filter((source) => !isProvenLinear(source)),
  );
  expect(checked.filter(({ source }) => refused.has(source))).toEqual([]);
  expect([...composed].toSorted()).toEqual(Object.keys(COMPOSED).toSorted());
  const present = new Set(literals.map(({ file, source }) => `${file} ${source}`));
  expect([...allowed].filter((one) => !present.has(one))).toEqual([]);
}, 180_000);

test("the check refuses expressions that take quadratic or cubic time", () => {
  expect(isProvenLinear("/ +$/")).toBe(false);
  expect(isProvenLinear("/^a: *([ -~]*?) *$/")).toBe(false);
});
