import type { WorkloadConnect } from "@fairlead/protocol/workload-connect";
import { beforeEach, describe, expect, test } from "vitest";
import type { HttpAnswer, HttpRequest } from "../link/http-client.ts";
import { aDesiredState, aSpec } from "../testing/builders.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { silentLog } from "../testing/silent-log.ts";
import { ConnectFiles, connectCall } from "./connect-files.ts";

const MINUTE_MS = 60_000;

describe("the gateway's URL and token as files", () => {
  let time: FakeTime;
  let asked: number;
  let down: boolean;
  let files: Map<string, string>;
  let connect: ConnectFiles;

  beforeEach(() => {
    time = new FakeTime();
    [asked, down] = [0, false];
    files = new Map();
    const ask = async (): Promise<WorkloadConnect> => {
      asked += 1;
      if (down) throw new Error("the platform is away");
      return { gatewayUrl: "https://host/gateway", authToken: `token-${asked}` };
    };
    const put = (workload: string, name: string, bytes: Uint8Array): void => {
      files.set(`${workload} ${name}`, Buffer.from(bytes).toString());
    };
    connect = new ConnectFiles({ ask, files: { put }, timers: time, random: () => 0.5, log: silentLog });
  });

  test("are written immediately with exact contents, and renewed while the token is still valid", async () => {
    const { workloadId } = aSpec();
    connect.desiredChanged(aDesiredState());
    await time.advance(0);
    expect([...files]).toEqual([
      [`${workloadId} fairlead-gateway-url`, "https://host/gateway"],
      [`${workloadId} fairlead-gateway-token`, "token-1"],
    ]);
    await time.advance(10 * MINUTE_MS);
    expect(files.get(`${workloadId} fairlead-gateway-token`)).toBe("token-2");
    connect.close();
  });

  test("are written as soon as the platform responds, and are requested at a bounded rate until then", async () => {
    down = true;
    connect.desiredChanged(aDesiredState());
    await time.advance(10 * MINUTE_MS);
    expect(files.size).toBe(0);
    expect(asked).toBeGreaterThan(10);
    expect(asked).toBeLessThan(40);
    down = false;
    await time.advance(MINUTE_MS);
    expect(files.size).toBe(2);
    connect.close();
  });

  test("are not requested without an engine, nor again for the same one", async () => {
    connect.desiredChanged(aDesiredState({ workloads: [] }));
    await time.advance(MINUTE_MS);
    expect(asked).toBe(0);
    connect.desiredChanged(aDesiredState());
    connect.desiredChanged(aDesiredState({ generation: 2 }));
    await time.advance(MINUTE_MS);
    expect(asked).toBe(1);
    connect.desiredChanged(aDesiredState({ workloads: [], generation: 3 }));
    await time.advance(60 * MINUTE_MS);
    expect(asked).toBe(1);
  });
});

describe("the daemon's own call", () => {
  const invalidated: string[] = [];
  let sent: HttpRequest[];
  let answer: Pick<HttpAnswer, "status" | "text">;
  const call = connectCall({
    platformUrl: "https://host/",
    nodeId: "nod_1",
    http: async (request) => {
      sent.push(request);
      return { ...answer, headers: {} };
    },
    tokens: { token: async () => "identity", invalidate: (token) => void invalidated.push(token) },
  });

  beforeEach(() => {
    sent = [];
  });

  test("sends the node's identity, and reads the interface's two fields", async () => {
    answer = { status: 200, text: '{"gatewayUrl":"u","authToken":"t","later":1}' };
    expect(await call()).toEqual({ gatewayUrl: "u", authToken: "t" });
    expect(sent[0]).toMatchObject({
      method: "GET",
      url: "https://host/v1/nodes/nod_1/workload-connect",
      bearer: "identity",
    });
  });

  test("drops an identity that was rejected, and throws the platform's error", async () => {
    answer = { status: 401, text: '{"error":{"code":"expired_credential","message":"Run out."}}' };
    await expect(call()).rejects.toMatchObject({ status: 401, code: "expired_credential" });
    expect(invalidated).toEqual(["identity"]);
    answer = { status: 200, text: "<html>" };
    await expect(call()).rejects.toThrow();
  });
});
