import { afterAll, beforeAll, expect, test } from "vitest";
import { StartedServer } from "../support/started-server.ts";
import { waitFor } from "../support/wait-for.ts";

/** Half a minute of quiet, and what a busy machine adds. */
const PATIENCE_MS = 90_000;

let server: StartedServer;

beforeAll(async () => {
  server = await StartedServer.start({ log: { level: "debug" } });
});
afterAll(() => server.remove());

test("a server without calls runs garbage collection by itself and keeps responding", {
  timeout: 100_000,
}, async () => {
  await waitFor("a collection", PATIENCE_MS, async () =>
    server.log.includes("collected garbage while the server is idle"),
  );
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
});
