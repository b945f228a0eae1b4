import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { CHAT, HostStage } from "@fairlead/inference/host/host-stage.fixture";
import { JSON_TYPE } from "@fairlead/inference/relay/call-relay.fixture";
import type { ScriptedUpstream } from "@fairlead/inference/testing/scripted-upstream";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { type OtlpTraces, openOtlpTraces } from "./otlp-traces.ts";

const valueSchema = z.object({
  stringValue: z.string().optional(),
  intValue: z.union([z.string(), z.number()]).optional(),
  doubleValue: z.number().optional(),
  boolValue: z.boolean().optional(),
});
const spanSchema = z.object({
  traceId: z.string(),
  spanId: z.string(),
  parentSpanId: z.string().optional(),
  name: z.string(),
  kind: z.number(),
  attributes: z.array(z.object({ key: z.string(), value: valueSchema })),
  status: z.object({ code: z.number(), message: z.string().optional() }),
});
const exportSchema = z.object({
  resourceSpans: z.array(z.object({ scopeSpans: z.array(z.object({ spans: z.array(spanSchema) })) })),
});
type Span = z.infer<typeof spanSchema>;

/** What an operator's collector takes, over OTLP/HTTP. */
class Collector {
  readonly spans: Span[] = [];
  text = "";
  refuses = false;
  readonly #server: Server = createServer((request, response) => {
    void json(request).then((body) => {
      this.text += JSON.stringify(body);
      if (!this.refuses) {
        const { resourceSpans } = exportSchema.parse(body);
        this.spans.push(...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)));
      }
      response.writeHead(this.refuses ? 400 : 200, { "content-type": "application/json" });
      response.end("{}");
    });
  });

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

let collector: Collector;
let traces: OtlpTraces;
let stage: HostStage;
let upstream: ScriptedUpstream;
let logged: string;

beforeEach(async () => {
  collector = new Collector();
  stage = new HostStage();
  logged = "";
  const log = pino({ level: "info" }, { write: (line: string) => void (logged += line) });
  traces = await openOtlpTraces({ endpoint: await collector.listen(), clock: stage.clock, log });
  await stage.open({ traces });
  upstream = stage.place("box");
});
afterEach(async () => {
  await stage.close();
  await traces.close();
  collector.close();
});

async function call(headers: Record<string, string>, answer: (far: ScriptedUpstream["calls"][number]) => void) {
  const arrived = upstream.nextCall();
  const answered = stage.chat({ ...CHAT, messages: [{ role: "user", content: "a secret question" }] }, { headers });
  const far = await arrived;
  const request = await far.request;
  stage.clock.advance(250);
  answer(far as ScriptedUpstream["calls"][number]);
  await (await answered).text();
  await vi.waitFor(() => expect(stage.ends.length).toBeGreaterThan(0));
  return request;
}

async function theSpan(): Promise<Span & { readonly facts: Record<string, unknown> }> {
  await traces.close();
  expect(collector.spans).toHaveLength(1);
  const [span] = collector.spans;
  if (span === undefined) throw new Error("no span");
  const facts = Object.fromEntries(
    span.attributes.map(({ key, value }) => [key, Object.values(value).find((part) => part !== undefined)]),
  );
  return { ...span, facts };
}

const usage = { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 };
const good = (far: ScriptedUpstream["calls"][number]): void => {
  far.respond(200, JSON_TYPE);
  far.write(JSON.stringify({ choices: [{ message: { content: "a secret answer" } }], usage }));
  far.end();
};
const TRACE = "0af7651916cd43dd8448eb211c80319c";
const PARENT = "b7ad6b7169203331";
const parentOf = ({ traceparent }: IncomingHttpHeaders): string[] => String(traceparent).split("-");

describe("call traces", () => {
  test("record the request's attributes and usage, but no content", async () => {
    await call({}, good);
    const { name, kind, status, facts } = await theSpan();
    expect({ name, kind, status }).toEqual({ name: "chat any/model", kind: 3, status: { code: 0 } });
    expect(facts).toMatchObject({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "node:box",
      "gen_ai.request.model": "any/model",
      "gen_ai.usage.input_tokens": 9,
      "gen_ai.usage.output_tokens": 4,
      "http.response.status_code": 200,
      "fairlead.project_id": "prj_1",
      "fairlead.caller_id": "key_1",
      "fairlead.attempts": 1,
      "fairlead.outcome": "ok",
    });
    expect(facts).not.toHaveProperty("error.type");
    expect(collector.text).not.toMatch(/secret|flk_/);
  });

  test("continue the caller's trace, and pass it on to the upstream", async () => {
    const { headers } = await call({ traceparent: `00-${TRACE}-${PARENT}-01` }, good);
    const span = await theSpan();
    expect(span).toMatchObject({ traceId: TRACE, parentSpanId: PARENT });
    expect(parentOf(headers)).toEqual(["00", TRACE, span.spanId, "01"]);
  });

  test("start a new trace if the caller sends none or an invalid one", async () => {
    const { headers } = await call({ traceparent: `00-${"0".repeat(32)}-${PARENT}-01` }, good);
    const { traceId, parentSpanId, spanId } = await theSpan();
    expect(traceId).not.toBe("0".repeat(32));
    expect(parentSpanId).toBeUndefined();
    expect(parentOf(headers).slice(1, 3)).toEqual([traceId, spanId]);
  });

  test("are not recorded if the caller's trace is not sampled, but its context is still passed on", async () => {
    const { headers } = await call({ traceparent: `00-${TRACE}-${PARENT}-00` }, good);
    await traces.close();
    expect(collector.spans).toEqual([]);
    expect(parentOf(headers)).toMatchObject(["00", TRACE, expect.any(String), "00"]);
  });

  test("record a failure by its code", async () => {
    await call({}, (far) => far.cut());
    const { status, facts } = await theSpan();
    expect(status).toMatchObject({ code: 2, message: "upstream_failed" });
    expect(facts["error.type"]).toBe("upstream_failed");
  });

  test("that cannot be delivered are logged once, and delay nothing", async () => {
    collector.refuses = true;
    await call({}, good);
    await call({}, good);
    await traces.close();
    expect(logged.match(/traces cannot be sent/g)).toHaveLength(1);
  });
});

test("without an endpoint, the caller's trace is passed on unchanged", async () => {
  await stage.close();
  stage = new HostStage();
  await stage.open();
  upstream = stage.place("box");
  const { headers } = await call({ traceparent: `00-${TRACE}-${PARENT}-01` }, good);
  expect(headers["traceparent"]).toBe(`00-${TRACE}-${PARENT}-01`);
});
