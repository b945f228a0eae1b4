import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { TurnShare } from "./turn-share.ts";

const MB = 1024 * 1024;
let server: Server;
let near: Socket;
let far: Socket;

beforeEach(async () => {
  server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  near = connect((server.address() as AddressInfo).port, "127.0.0.1");
  [far] = (await once(server, "connection")) as [Socket];
});
afterEach(() => {
  near.destroy();
  far.destroy();
  server.close();
});

/** @returns the most that was read within one turn, once all of it has come. */
async function mostInOneTurn(bytes: number): Promise<number> {
  let [most, inTurn, all] = [0, 0, 0];
  const share = new TurnShare(near, () => true);
  const whole = Promise.withResolvers<void>();
  near.on("data", (chunk: Buffer) => {
    if (inTurn === 0)
      setImmediate(() => {
        most = Math.max(most, inTurn);
        inTurn = 0;
      });
    inTurn += chunk.length;
    all += chunk.length;
    share.took(chunk.length);
    if (all === bytes) setImmediate(whole.resolve);
  });
  far.write(Buffer.alloc(bytes));
  await whole.promise;
  return most;
}

test("a peer that sends as fast as it can gets a few reads per turn, and all its data arrives", async () => {
  expect(await mostInOneTurn(32 * MB)).toBeLessThanOrEqual(4 * 65_536);
});
