import type { DaemonUpdate } from "@fairlead/protocol/daemon-updates";
import { describe, expect, test } from "vitest";
import { FakeTime, settle } from "../testing/fake-time.ts";
import { MemoryFiles } from "../testing/memory-files.ts";
import { silentLog } from "../testing/silent-log.ts";
import { aWantedDaemon } from "../testing/wanted.ts";
import type { UpdatesAtStart } from "./open-updates.ts";
import { type Problem, STEPS, type StepName } from "./update-plan.ts";
import { NO_UPDATES, type Trial, type UpdateRecord, updateRecordIn } from "./update-record.ts";
import type { UpdateSteps } from "./update-steps.ts";
import { Updater } from "./updater.ts";

const wanted = aWantedDaemon();
const trial: Trial = {
  from: "0.9.0",
  to: "1.0.0",
  request: "node:0",
  before: { link: true, engine: true },
  failed: null,
};

interface Harness {
  readonly updater: Updater;
  readonly time: FakeTime;
  readonly events: string[];
  readonly seen: (string | undefined)[];
  readonly steps: string[];
  /** Finishes the running step. */
  readonly end: (step: StepName, problem?: Problem) => Promise<void>;
  readonly saved: () => Promise<UpdateRecord | null>;
  readonly handedOver: () => boolean;
}

function start(from: Partial<UpdatesAtStart> = {}): Harness {
  const time = new FakeTime();
  const events: string[] = [];
  const seen: (string | undefined)[] = [];
  const taken: string[] = [];
  const running = new Map<StepName, (problem: Problem | null) => void>();
  const record = updateRecordIn(new MemoryFiles(), "/state");
  const steps = Object.fromEntries(
    STEPS.map((name) => [
      name,
      () => {
        taken.push(name);
        return new Promise((resolve) => running.set(name, resolve));
      },
    ]),
  ) as unknown as UpdateSteps;
  const opened: UpdatesAtStart = {
    record,
    versions: null,
    start: { kind: "settled", record: NO_UPDATES, rolledBack: null },
    ...from,
  };
  const updater = new Updater({
    opened,
    trialSeconds: 300,
    version: "1.0.0",
    arch: "x64",
    steps,
    clock: time,
    timers: time,
    random: () => 0.5,
    log: silentLog,
    onEvent: (kind, _workload, message) => events.push(`${kind}: ${message}`),
    onChange: () => seen.push(updater.progress()?.state),
  });
  let over = false;
  void updater.handedOver.then(() => {
    over = true;
  });
  updater.start();
  return {
    updater,
    time,
    events,
    seen,
    steps: taken,
    end: async (step, problem) => {
      running.get(step)?.(problem ?? null);
      await settle();
    },
    saved: async () => (await record.load()).value,
    handedOver: () => over,
  };
}

const onTrial = (): Partial<UpdatesAtStart> => ({
  start: { kind: "on-trial", record: { trial, last: null }, trial },
});

describe("an updater", () => {
  test("goes from step to step, hands over, and reports each step", async () => {
    const { updater, end, steps, seen, events, handedOver } = start();
    expect(updater.progress()).toBeNull();
    updater.asked(wanted);
    for (const step of STEPS) await end(step);
    expect(steps).toEqual([...STEPS]);
    expect(new Set(seen)).toEqual(new Set(STEPS));
    expect(handedOver()).toBe(true);
    expect(events).toEqual([
      "daemon_update_started: updating the daemon to version 2.0.0; downloading",
      "daemon_update_restarting: restarting as daemon version 2.0.0",
    ]);
  });

  test("retries a temporary failure after a while, and reports the problem meanwhile", async () => {
    const { updater, end, time, steps } = start();
    updater.asked(wanted);
    await end("downloading", { reason: "no_room", message: "too little disk space" });
    expect(updater.progress()).toMatchObject({ state: "waiting" } satisfies Partial<DaemonUpdate>);
    expect(updater.finding()).toEqual({ status: "problem", reason: "no_room", message: "too little disk space" });
    await time.advance(30_000);
    expect(steps).toEqual(["downloading", "downloading"]);
    expect(updater.finding()).toMatchObject({ status: "ok" });
  });

  test("remembers a failed update across a restart, and is healthy again once it is no longer requested", async () => {
    const { updater, end, events, saved } = start();
    updater.asked(wanted);
    await end("downloading");
    await end("unpacking");
    await end("checking", { reason: "check_failed", message: "it cannot run here" });
    expect(events.at(-1)).toBe("daemon_update_refused: the update to daemon version 2.0.0 failed: it cannot run here");
    expect(updater.finding()).toMatchObject({ status: "problem", reason: "refused" });
    const record = (await saved()) ?? NO_UPDATES;
    expect(record.last).toMatchObject({ wanted: "2.0.0", state: "refused" });
    const later = start({ start: { kind: "settled", record, rolledBack: null } });
    later.updater.asked(wanted);
    expect(later.steps).toEqual([]);
    expect(later.updater.finding()).toMatchObject({ status: "problem", reason: "refused" });
    later.updater.asked(null);
    expect(later.updater.finding()).toMatchObject({ status: "ok" });
    later.updater.asked(aWantedDaemon({ request: "node:2" }));
    expect(later.steps).toEqual(["downloading"]);
  });

  test("stops an update that is no longer requested, and ignores the result of its running step", async () => {
    const { updater, end, steps } = start();
    updater.asked(wanted);
    updater.asked(null);
    await end("downloading");
    expect([updater.progress(), steps]).toEqual([null, ["downloading"]]);
  });

  test("reports what happened to a version that was rolled back to this one", async () => {
    const last = {
      wanted: "2.0.0",
      request: "node:1",
      state: "rolled_back",
      message: "no link",
      since: "then",
    } as const;
    const record = { trial: null, last };
    const { updater, events } = start({ start: { kind: "settled", record, rolledBack: last } });
    expect(events).toEqual(["daemon_rolled_back: the update to daemon version 2.0.0 failed: no link"]);
    expect(updater.progress()).toMatchObject({ wanted: "2.0.0", state: "rolled_back", since: "then" });
  });
});

describe("a version on trial", () => {
  test("proves itself, is recorded as done, and only then continues with the requested update", async () => {
    const { updater, time, events, steps, saved, handedOver } = start(onTrial());
    updater.asked(wanted);
    updater.looked("answered");
    updater.linked();
    expect([updater.isOnTrial, updater.progress()?.state, steps]).toEqual([true, "trial", []]);
    await time.advance(11_000);
    expect(await saved()).toMatchObject({ trial: null, last: { wanted: "1.0.0", state: "done" } });
    expect(events[0]).toBe("daemon_updated: updated the daemon from version 0.9.0 to 1.0.0; the trial passed");
    expect([updater.isOnTrial, steps, handedOver()]).toEqual([false, ["downloading"], false]);
  });

  test("that does not reach the control plane records the reason, and hands over to the previous version", async () => {
    const { updater, time, saved, handedOver } = start(onTrial());
    updater.looked("answered");
    await time.advance(299_000);
    expect(handedOver()).toBe(false);
    await time.advance(2000);
    expect(handedOver()).toBe(true);
    const failed = "within 300 s it did not reach the control plane";
    expect(await saved()).toMatchObject({ trial: { from: "0.9.0", failed } });
  });
});
