import type { Socket } from "node:net";
import { type Duplex, duplexPair } from "node:stream";
import { expect, test } from "vitest";
import { turns } from "../yamux/yamux.fixture.ts";
import { ConnectionPool } from "./connection-pool.ts";
import type { Http1Connection } from "./http1-connection.ts";

const CALLS = 300;
const OK = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nkeep-alive: timeout=600\r\n\r\n";

test("keeps at most 256 free connections, whatever the other side allows", async () => {
  const opened: Duplex[] = [];
  const pool = new ConnectionPool({
    clock: { monotonic: () => 0 },
    connect: (callback) => {
      const [near, far] = duplexPair();
      opened.push(near);
      far.once("data", () => setImmediate(() => far.write(OK)));
      callback(null, Object.assign(near, { setNoDelay: () => near }) as unknown as Socket);
    },
  });
  let ended = 0;
  for (let count = 0; count < CALLS; count += 1) {
    pool.run({
      onConnection: (connection: Http1Connection) => {
        const call = {
          onHeaders: () => undefined,
          onData: () => true,
          onEnd: () => void (ended += 1),
          onLost: () => undefined,
        };
        connection.send({ method: "GET", head: "GET / HTTP/1.1\r\n\r\n", body: [] }, call);
        return true;
      },
      onNotReached: () => undefined,
      onHeaders: () => undefined,
      onData: () => true,
      onEnd: () => undefined,
      onLost: () => undefined,
    });
  }
  await expect.poll(() => ended).toBe(CALLS);
  await turns(4);
  expect(opened.filter((socket) => !socket.destroyed)).toHaveLength(256);
  await pool.close();
});
