import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import type { Host } from "../platform/http-client.ts";
import { run } from "../testing/run.ts";
import { type StubHost, startStubHost } from "../testing/stub-host.ts";
import { listAll } from "./list-all.ts";

const list = { path: "/v1/things", field: "things", item: z.number() };

let stub: StubHost | undefined;
afterEach(() => stub?.close());

async function hostWith(pages: readonly object[]): Promise<Host> {
  const left = [...pages];
  stub = await startStubHost({ "GET /v1/things": (response) => void response.end(JSON.stringify(left.shift())) });
  return {
    name: "platform host",
    url: stub.url,
    urlSetting: "FAIRLEAD_BASE_URL",
    credentialSetting: { name: "FAIRLEAD_TOKEN", source: "the environment" },
    credential: async () => "tok",
  };
}

describe("listAll", () => {
  test("fetches all pages, with the same filter on each", async () => {
    const host = await hostWith([
      { things: [1, 2], nextPageToken: "a b" },
      { things: [3], nextPageToken: "" },
    ]);
    expect(await listAll(host, { ...list, query: { colour: "red", size: undefined } }, {})).toEqual([1, 2, 3]);
    expect(stub?.seen.map(({ url }) => url)).toEqual([
      "/v1/things?colour=red&pageSize=200",
      "/v1/things?colour=red&pageSize=200&pageToken=a+b",
    ]);
  });

  test("stops at the limit, and requests no more than that", async () => {
    const host = await hostWith([
      { things: [1, 2], nextPageToken: "a" },
      { things: [3, 4], nextPageToken: "b" },
    ]);
    expect(await listAll(host, list, { limit: 3 })).toEqual([1, 2, 3]);
    expect(stub?.seen.map(({ url }) => url)).toEqual(["/v1/things?pageSize=3", "/v1/things?pageSize=1&pageToken=a"]);
  });

  test("does not follow a page token that leads to the same page", async () => {
    const page = { things: [1], nextPageToken: "a" };
    await expect(listAll(await hostWith([page, page, page]), list, {})).rejects.toThrow(
      /keeps returning the same page/,
    );
  });

  test("names the invalid field of a page", async () => {
    await expect(listAll(await hostWith([{ things: ["x"] }]), list, {})).rejects.toThrow(
      /invalid response \(things\.0\)/,
    );
  });
});

test.each(["0", "-1", "1.5", "many", ""])("--limit %j is a usage error", async (limit) => {
  const result = await run(["project", "list", "--limit", limit]);
  expect(result).toMatchObject({ code: 2, notes: expect.stringContaining("an integer") });
});
