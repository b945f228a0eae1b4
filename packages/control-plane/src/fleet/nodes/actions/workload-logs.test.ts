import type { TunnelCall, TunnelTransport } from "@fairlead/wire/tunnel-transport";
import { afterEach, expect, test } from "vitest";
import type { UserPrincipal } from "../../../access/auth/principal.ts";
import { WorkloadLogs } from "./workload-logs.ts";

const CALLER = { kind: "user", userId: "usr_1", platformAdmin: false } as UserPrincipal;
const MOST = 32;

/** A daemon that takes every call and answers none. */
const silent: TunnelTransport = { open: (): TunnelCall => ({ resume: () => undefined, abort: () => undefined }) };

let logs: WorkloadLogs;

afterEach(() => logs.close());

function silentLogs(headMs?: number): WorkloadLogs {
  const sessions = { find: () => null };
  return new WorkloadLogs({
    sessions,
    daemons: { toDaemon: () => silent },
    ...(headMs === undefined ? {} : { headMs }),
  });
}

function open(nodeId: string): Promise<unknown> {
  const workload = {
    nodeId,
    name: "engine",
    confirm: () => Promise.resolve(),
    record: () => Promise.resolve(),
    noContainer: "none",
    unreachable: "away",
  };
  return logs.open(CALLER, workload, { follow: true }).catch((error: unknown) => error);
}

test("reading a log times out if the daemon never responds", async () => {
  logs = silentLogs(1);
  expect(await open("a")).toMatchObject({ code: "unavailable", message: "away" });
});

test("one node's logs that do not begin leave room for the logs of others", async () => {
  logs = silentLogs();
  const waiting = Array.from({ length: MOST }, () => open("a"));
  expect(await open("a")).toMatchObject({ code: "overloaded" });
  const other = open("b");
  expect(await Promise.race([other, new Promise((resolve) => setImmediate(resolve, "waits"))])).toBe("waits");
  logs.close();
  expect(await Promise.all([...waiting, other])).toEqual(
    Array.from({ length: MOST + 1 }, () => expect.objectContaining({ code: "unavailable" }) as unknown),
  );
});
