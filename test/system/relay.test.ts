import { once } from "node:events";
import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Person, RelayStage, type StagedNode } from "../support/relay-stage.ts";
import { readBytes } from "../support/scripted-engine.ts";

let stage: RelayStage;
let owner: Person;
let node: StagedNode;
let gatewayUrl: string;
let authToken: string;

beforeAll(async () => {
  stage = await RelayStage.start();
  owner = await stage.addPerson();
  node = await stage.addNode(owner, await stage.addProject(owner));
});
afterAll(() => stage.stop());
beforeEach(async () => {
  ({ gatewayUrl, authToken } = await stage.connect(owner.token, node.id));
  node.engine.requests.length = 0;
});

interface Asked {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly token?: string | null;
}

/** A request as it is written, without anything that fetch would tidy. */
function ask({ path = "/", method = "GET", headers = {}, token = authToken }: Asked = {}): ClientRequest {
  const { hostname, port, pathname } = new URL(gatewayUrl);
  const authorization = token === null ? {} : { authorization: `Bearer ${token}` };
  const call = httpRequest({
    hostname,
    port,
    path: path.startsWith("http") ? path : pathname + path,
    method,
    agent: false,
    headers: { ...authorization, ...headers },
  });
  call.on("error", () => undefined);
  return call;
}

async function answerOf(call: ClientRequest): Promise<IncomingMessage & { readonly text: string }> {
  const [answer] = (await once(call.end(), "response")) as [IncomingMessage];
  return Object.assign(answer, { text: await text(answer) });
}

describe("HTTP through the relay", () => {
  test("brings method, path, headers and body to the engine, and its answer back", async () => {
    let body = "";
    node.engine.script = async (request, response) => {
      body = (await readBytes(request)).toString();
      response.writeHead(201, { "x-engine": "yes", "content-type": "text/plain" }).end("done");
    };
    const call = ask({
      path: "/v1/x?y=%2F",
      method: "PROPFIND",
      headers: { "content-type": "text/x", "content-length": "5" },
    });
    call.write("hello");
    const answer = await answerOf(call);
    expect([answer.statusCode, answer.headers["x-engine"], answer.text]).toEqual([201, "yes", "done"]);
    expect(body).toBe("hello");
    expect(node.engine.requests[0]).toMatchObject({ method: "PROPFIND", url: "/v1/x?y=%2F" });
  });
});
