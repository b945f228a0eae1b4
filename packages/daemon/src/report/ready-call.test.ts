import { expect, test } from "vitest";
import { FakePlatform, refusal } from "../testing/fake-platform.ts";
import { readyCall } from "./ready-call.ts";

const request = { id: "nod_1", workloadReports: [], operatingSystem: "Test 1", workerImageDigest: "" };

function start(platform: FakePlatform) {
  const invalidated: string[] = [];
  const tokens = { token: async () => "jwt", invalidate: (token: string) => void invalidated.push(token) };
  return { invalidated, call: readyCall({ platformUrl: "https://platform.test", http: platform.client, tokens }) };
}

test("the node identity token is the credential (docs/interface.md §4.4, §5)", async () => {
  const platform = new FakePlatform().reply({ json: {} });
  await start(platform).call(request);
  expect(platform.requests).toMatchObject([
    { method: "POST", url: "https://platform.test/v1/nodes/nod_1/ready", bearer: "jwt", body: request },
  ]);
});

test("a 401 invalidates the token, so that the next call sends another", async () => {
  const { call, invalidated } = start(new FakePlatform().reply(refusal(401, "expired_credential")));
  await expect(call(request)).rejects.toMatchObject({ status: 401, code: "expired_credential" });
  expect(invalidated).toEqual(["jwt"]);
});

test("a response from an intermediary is an error too", async () => {
  const { call } = start(new FakePlatform().reply({ status: 204, text: "" }, { status: 302, text: "" }));
  await expect(call(request)).rejects.toThrow("204");
  await expect(call(request)).rejects.toThrow("302");
});
