import { describe, expect, test } from "vitest";
import { CliError } from "../../cli-error.ts";
import type { LoadControlPlane } from "../../platform/control-plane.ts";
import { fakeTerminal } from "../../testing/fake-terminal.ts";
import { run } from "../../testing/run.ts";

const addresses = { platformUrl: "http://127.0.0.1:1", inferenceUrl: "http://127.0.0.1:2", setUpUrl: null };

let stops = 0;
const onStopping = (): void => void stops++;

interface FakeServer {
  readonly setUpUrl?: string | null;
  readonly fenced?: Promise<void>;
}

const never = Promise.withResolvers<void>().promise;

function loadServer(
  start: () => void,
  close: () => Promise<void>,
  { setUpUrl = null, fenced = never }: FakeServer = {},
): LoadControlPlane {
  return () =>
    Promise.resolve({
      startServer: () => {
        start();
        return Promise.resolve({ ...addresses, setUpUrl, fenced, close });
      },
      watchStop: () => Promise.resolve({ stopping: () => onStopping() }),
      withOperations: () => Promise.reject(new Error("not this one")),
      openLocalAdmin: () => Promise.reject(new Error("not this one")),
    });
}

describe("fairlead server", () => {
  test("runs until it is told to stop, then closes and succeeds", async () => {
    const terminal = fakeTerminal();
    let closed = 0;
    stops = 0;
    const load = loadServer(
      () => queueMicrotask(() => terminal.interrupt()),
      // The shutdown time is limited before the server waits for anything.
      () => Promise.resolve(void (closed += stops)),
    );
    expect(await run(["server", "--json"], { terminal, loadControlPlane: load })).toMatchObject({ code: 0 });
    expect(JSON.parse(terminal.printed.out)).toEqual(addresses);
    expect(closed).toBe(1);
  });

  test("shows the first-admin setup link only while there are no users", async () => {
    const link = "http://127.0.0.1:1/set-up/fli_x";
    for (const setUpUrl of [link, null]) {
      const terminal = fakeTerminal();
      const start = (): void => queueMicrotask(() => terminal.interrupt());
      await run(["server"], { terminal, loadControlPlane: loadServer(start, () => Promise.resolve(), { setUpUrl }) });
      expect(terminal.printed.notes.includes("first administrator")).toBe(setUpUrl !== null);
      expect(terminal.printed.notes.includes(link)).toBe(setUpUrl !== null);
    }
  });

  test("exits immediately, without closing, when another server takes over the database", async () => {
    const terminal = fakeTerminal();
    const load = loadServer(
      () => undefined,
      () => Promise.reject(new Error("closed")),
      { fenced: Promise.resolve() },
    );
    await run(["server"], { terminal, loadControlPlane: load });
    expect(terminal.exits).toEqual([70]);
    expect(terminal.printed.notes).toContain("taken over");
  });

  test("finishes starting, then closes, on a signal during startup", async () => {
    const terminal = fakeTerminal();
    const order: string[] = [];
    const load = loadServer(
      () => {
        terminal.interrupt();
        order.push("started");
      },
      () => Promise.resolve(void order.push("closed")),
    );
    expect((await run(["server"], { terminal, loadControlPlane: load })).code).toBe(0);
    expect(order).toEqual(["started", "closed"]);
  });

  test("exits immediately on a second signal", async () => {
    const terminal = fakeTerminal();
    const load = loadServer(
      () => terminal.interrupt(),
      () => {
        terminal.interrupt();
        return Promise.resolve();
      },
    );
    await run(["server"], { terminal, loadControlPlane: load });
    expect(terminal.exits).toEqual([1]);
  });

  test("fails with the message of an invalid configuration", async () => {
    const load: LoadControlPlane = () => Promise.reject(new CliError("The configuration is wrong."));
    expect(await run(["server"], { loadControlPlane: load })).toMatchObject({
      code: 1,
      notes: "fairlead: The configuration is wrong.\n",
    });
  });
});
