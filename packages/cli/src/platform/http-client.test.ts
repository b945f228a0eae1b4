import type { ServerResponse } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { type StubHost, startStubHost } from "../testing/stub-host.ts";
import { callJson, type Host } from "./http-client.ts";

const doneSchema = z.object({ done: z.boolean() });
const cut = (response: ServerResponse): void => void response.destroy();
const done = (response: ServerResponse): void => void response.end('{"done":true}');

let stub: StubHost | undefined;
afterEach(() => stub?.close());

/** A host with scripted responses, one per call; the last one is repeated. */
async function hostThat(...answers: ((response: ServerResponse) => void)[]): Promise<Host> {
  const next = (response: ServerResponse): void => (answers.length > 1 ? answers.shift() : answers[0])?.(response);
  stub = await startStubHost({ "GET /v1/x": next, "POST /v1/x": next, "DELETE /v1/x": next });
  return {
    name: "platform host",
    url: stub.url,
    urlSetting: "FAIRLEAD_BASE_URL",
    credentialSetting: { name: "FAIRLEAD_TOKEN", source: "the environment" },
    credential: async () => "tok",
  };
}

describe("a call whose response is lost", () => {
  test("is sent again with the same Idempotency-Key", async () => {
    const host = await hostThat(cut, done);
    const call = { method: "POST", path: "/v1/x", body: {}, idempotencyKey: "once" } as const;
    expect(await callJson(host, call, doneSchema)).toEqual({ done: true });
    expect(stub?.seen.map(({ idempotencyKey }) => idempotencyKey)).toEqual(["once", "once"]);
  });

  test("is sent again when it only reads data", async () => {
    const host = await hostThat(cut, done);
    expect(await callJson(host, { path: "/v1/x" }, doneSchema)).toEqual({ done: true });
  });

  test("is not sent again when that could repeat an action", async () => {
    const host = await hostThat(cut, done);
    const work = callJson(host, { method: "POST", path: "/v1/x", body: {} }, doneSchema);
    await expect(work).rejects.toThrow(/Cannot reach the platform host/);
    expect(stub?.seen.length).toBe(1);
  });

  test("is given up after three attempts", async () => {
    const host = await hostThat(cut);
    await expect(callJson(host, { path: "/v1/x" }, doneSchema)).rejects.toThrow(/Cannot reach the platform host/);
    expect(stub?.seen.length).toBe(3);
  });
});

describe("an error response", () => {
  test("is not treated as a lost response, and has its control characters replaced", async () => {
    const error = { message: "No \u001b[2Jsuch \u202ething.", code: "not_found" };
    const host = await hostThat((response) => void response.writeHead(404).end(JSON.stringify({ error })));
    await expect(callJson(host, { path: "/v1/x" }, doneSchema)).rejects.toThrow(
      "No \ufffd[2Jsuch \ufffdthing. (not_found)",
    );
    expect(stub?.seen.length).toBe(1);
  });

  test("for a renewed login says to sign in", async () => {
    const error = { message: "The session was ended.", code: "invalid_credential" };
    const host = await hostThat((response) => void response.writeHead(401).end(JSON.stringify({ error })));
    const work = callJson({ ...host, credentialSetting: null }, { path: "/v1/x" }, doneSchema);
    await expect(work).rejects.toThrow("(invalid_credential)\nRun `fairlead login`.");
    expect(stub?.seen.length).toBe(2);
  });

  test.each([
    ["FAIRLEAD_TOKEN", "the environment", "takes precedence over a login. To use a login, run `unset FAIRLEAD_TOKEN`,"],
    ["FAIRLEAD_TOKEN", "/q.env", "takes precedence over a login. To use a login, remove FAIRLEAD_TOKEN from /q.env,"],
    ["FAIRLEAD_API_KEY", "the environment", "This is the key in FAIRLEAD_API_KEY. Set another key;"],
    ["FAIRLEAD_API_KEY", "/q.env", "This is the key in FAIRLEAD_API_KEY. Set another key in /q.env;"],
  ] as const)("for %s from %s names the variable and says what to do", async (name, source, advice) => {
    for (const code of ["invalid_credential", "expired_credential"]) {
      const error = { message: "Refused.", code };
      const host = await hostThat((response) => void response.writeHead(401).end(JSON.stringify({ error })));
      const work = callJson({ ...host, credentialSetting: { name, source } }, { path: "/v1/x" }, doneSchema);
      await expect(work).rejects.toThrow(advice);
      stub?.close();
    }
  });

  test("for a credential that cannot be renewed is final", async () => {
    const host = await hostThat((response) => void response.writeHead(401).end("{}"));
    await expect(callJson(host, { path: "/v1/x" }, doneSchema)).rejects.toThrow(/returned 401/);
    expect(stub?.seen.length).toBe(1);
  });
});
