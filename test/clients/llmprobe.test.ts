import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { MODEL, type TwoDialects } from "../support/two-dialects.ts";
import { describeClient, useStage } from "./support.ts";

const run = promisify(execFile);
const LLMPROBE = new URL("node_modules/.bin/llmprobe", import.meta.url).pathname;
const NO_INTERNET = new URL("no-internet.ts", import.meta.url).pathname;

const MUST_PASS = [
  "models-list",
  ...["chat", "responses"].flatMap((surface) =>
    [
      "basic",
      "streaming",
      "parity",
      "usage",
      "stream-usage",
      "finish-length",
      "limits-max-tokens",
      "unicode",
      "errors",
      "tool-serialization",
      "tool-stream-reassembly",
      "tool-result-turn",
      "parallel-tools",
      "tool-choice-none",
      "parallel-tools-off",
      "tool-arg-types",
      "json-mode",
      "structured-outputs",
      "structured-markers",
      "structured-terminates",
      "tool-args-literal-delimiter",
      "vision",
      "top-p",
      "reasoning",
      "reasoning-cap",
      "reasoning-scratchpad",
      "prompt-caching",
      "prompt-cache-prefix",
      "concurrency",
      "concurrency-cache",
    ].map((id) => `${surface}-${id}`),
  ),
  "chat-limits-stop",
  "chat-seed",
  "chat-reasoning-roundtrip",
  "chat-max-tokens-alias",
  "chat-stop-string",
  "chat-template-kwargs",
  "chat-sampling-extensions",
  "responses-reasoning-effort-none",
  "responses-event-order",
];

/** What cannot pass, and why. A clean refusal counts as right; a call that is taken and then not obeyed would not. */
const CANNOT_PASS: Readonly<Record<string, string>> = {
  "chat-logprobs": "the scripted model has none to tell, and says so",
  "chat-n-choices": "the scripted model gives one answer, and says so; a response has one in any case",
  "chat-assistant-prefill": "the scripted model does not go on with a sentence of its own",
  "chat-rate-limit-headers": "the stage sets no limits",
  "responses-rate-limit-headers": "the stage sets no limits",
  "responses-reasoning-roundtrip": "there is nothing in this dialect that could be checked",
  "responses-previous-response-id": "no responses are stored: refused, with the code that SDKs know",
  "responses-background": "a call is answered while its caller waits: refused",
  "responses-mcp-tools": "not probed",
};

interface Report {
  readonly conformance: { readonly results: readonly Result[] };
}

interface Result {
  readonly id: string;
  readonly surface: string;
  readonly outcome: "pass" | "fail" | "unsupported" | "inconclusive" | "skipped";
  readonly reason?: string;
  readonly failures: readonly { readonly severity: string; readonly message: string }[];
}

describeClient("llmprobe", () => {
  const stage = useStage();

  describe.each([
    ["chat, with bridged responses", MODEL.chat],
    ["responses, with bridged chat completions", MODEL.responses],
  ])("against an engine that speaks %s", (_name, model) => {
    test("finds every supported surface correct and names what is refused", { timeout: 120_000 }, async () => {
      const results = await probe(stage, model);
      const ours = results.filter(({ surface }) => ["models", "chat", "responses"].includes(surface));
      const failed = ours.filter(({ outcome }) => outcome === "fail");
      expect(failed).toEqual([]);
      const passed = ours.filter(({ outcome }) => outcome === "pass").map(({ id }) => id);
      expect(passed).toEqual(expect.arrayContaining(MUST_PASS));
      const unknown = ours.filter(({ id }) => !MUST_PASS.includes(id) && !Object.hasOwn(CANNOT_PASS, id));
      expect(unknown).toEqual([]);
    });
  });
});

async function probe(stage: TwoDialects, model: string): Promise<readonly Result[]> {
  // It would write a library of its runs there.
  const home = mkdtempSync(join(tmpdir(), "fairlead-llmprobe-"));
  const args = [stage.plane.url, "-k", stage.key, "-m", model, "--full", "--no-bench", "--no-save", "--json"];
  const env = { PATH: process.env["PATH"], HOME: home, NODE_OPTIONS: `--import ${NO_INTERNET}` };
  try {
    // A model without wits fails what it grades besides: the exit code tells of that.
    const { stdout } = await run(LLMPROBE, args, { env, cwd: home, maxBuffer: 64 * 1024 * 1024 }).catch(
      (error: { stdout: string }) => error,
    );
    return (JSON.parse(stdout) as Report).conformance.results;
  } finally {
    rmSync(home, { recursive: true });
  }
}
