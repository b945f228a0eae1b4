import type { ServerResponse } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { callJson, type Host } from "./http-client.ts";
import { type StubHost, startStubHost } from "./testing/stub-host.ts";

const doneSchema = z.object({ done: z.boolean() });
const cut = (response: ServerResponse): void => void response.destroy();
const done = (response: ServerResponse): void => void response.end('{"done":true}');

let stub: StubHost | undefined;
afterEach(() => stub?.close());

/** A host that answers as told, one call after the other; the last stays. */
async function hostThat(...answers: ((response: ServerResponse) => void)[]): Promise<Host> {
  const next = (response: ServerResponse): void => (answers.length > 1 ? answers.shift() : answers[0])?.(response);
  stub = await startStubHost({ "GET /v1/x": next, "POST /v1/x": next, "DELETE /v1/x": next });
  return {
    name: "platform host",
    url: stub.url,
    urlSetting: "FAIRLEAD_BASE_URL",
    renewable: false,
    credential: async () => "tok",
  };
}

describe("a call whose answer was lost", () => {
  test("is sent again with the same Idempotency-Key", async () => {
    const host = await hostThat(cut, done);
    const call = { method: "POST", path: "/v1/x", body: {}, idempotencyKey: "once" } as const;
    expect(await callJson(host, call, doneSchema)).toEqual({ done: true });
    expect(stub?.seen.map(({ idempotencyKey }) => idempotencyKey)).toEqual(["once", "once"]);
  });

  test("is sent again when it only reads", async () => {
    const host = await hostThat(cut, done);
    expect(await callJson(host, { path: "/v1/x" }, doneSchema)).toEqual({ done: true });
  });

  test("is not sent again when that could do something twice", async () => {
    const host = await hostThat(cut, done);
    const work = callJson(host, { method: "POST", path: "/v1/x", body: {} }, doneSchema);
    await expect(work).rejects.toThrow(/No platform host answers/);
    expect(stub?.seen.length).toBe(1);
  });

  test("is given up after three times", async () => {
    const host = await hostThat(cut);
    await expect(callJson(host, { path: "/v1/x" }, doneSchema)).rejects.toThrow(/No platform host answers/);
    expect(stub?.seen.length).toBe(3);
  });
});

describe("a refusal", () => {
  test("is not taken for a lost answer, and cannot repaint the terminal", async () => {
    const error = { message: "No \u001b[2Jsuch \u202ething.", code: "not_found" };
    const host = await hostThat((response) => void response.writeHead(404).end(JSON.stringify({ error })));
    await expect(callJson(host, { path: "/v1/x" }, doneSchema)).rejects.toThrow(
      "No \ufffd[2Jsuch \ufffdthing. (not_found)",
    );
    expect(stub?.seen.length).toBe(1);
  });

  test("of a login that was renewed says to sign in", async () => {
    const error = { message: "The session was ended.", code: "invalid_credential" };
    const host = await hostThat((response) => void response.writeHead(401).end(JSON.stringify({ error })));
    const work = callJson({ ...host, renewable: true }, { path: "/v1/x" }, doneSchema);
    await expect(work).rejects.toThrow("(invalid_credential)\nRun `fairlead login`.");
    expect(stub?.seen.length).toBe(2);
  });

  test("of a credential that cannot be renewed is final", async () => {
    const host = await hostThat((response) => void response.writeHead(401).end("{}"));
    await expect(callJson(host, { path: "/v1/x" }, doneSchema)).rejects.toThrow(/answered 401/);
    expect(stub?.seen.length).toBe(1);
  });
});
