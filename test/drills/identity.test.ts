import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { describeWithDocker, ensureDemoImage } from "../support/docker.ts";
import { Installation } from "../support/installation.ts";
import { ANSWER, type Machine } from "../support/machine.ts";
import type { Program } from "../support/program.ts";
import { waitFor } from "../support/wait-for.ts";

const SOON_MS = 60_000;
/** Of a daemon that was turned down for good; systemd does not start it again. */
const REFUSED = 5;

/** Who may be a node: real daemons that bring a token twice, repeat a call whose answer was lost, or share one identity. */
describeWithDocker("a node's identity", () => {
  let installation: Installation;
  let machine: Machine;
  let engine = "";
  let second: Program | null = null;

  beforeAll(async () => {
    await ensureDemoImage();
    installation = await Installation.start();
    machine = await installation.addMachine("box");
    machine.startDaemon();
    await machine.untilActive();
    [engine = ""] = await machine.containers();
  });

  afterEach(async () => {
    await second?.kill();
    second = null;
  });

  afterAll(() => installation?.remove());

  const messagesOf = async (kind: string): Promise<string[]> =>
    (await machine.events()).filter((event) => event.kind === kind).map((event) => event.message);

  test("stays the same if a daemon repeats an enrollment whose response was lost, and no rejection is reported", async () => {
    await machine.daemon.kill();
    machine.forgetEnrolment();
    machine.startDaemon();
    await machine.untilItLogs("link established");
    expect(await machine.untilItAnswers()).toBe(ANSWER);
    expect(await machine.containers()).toEqual([engine]);
    expect(await messagesOf("enroll_refused")).toEqual([]);
  });

  test("is permanently refused to a second daemon with the same bootstrap token but its own key, and an event says so", async () => {
    const stranger = machine.startStranger();
    second = stranger;
    await stranger.ended;
    expect(stranger.exitCode).toBe(REFUSED);
    expect(stranger.log).toContain("bootstrap_token_used");
    expect(await messagesOf("enroll_refused")).toEqual([
      "Another daemon tried to enroll with a bootstrap token that was already used. If that was your daemon, issue a new token.",
    ]);
    expect(await machine.ask()).toBe(ANSWER);
  });

  test("in a copied state folder is reported by an event, the status message and both daemons, and the engine keeps running", async () => {
    const startedAt = await machine.startedAt(engine);
    const copy = machine.startCopy();
    second = copy;
    await waitFor("the event", SOON_MS, async () => (await messagesOf("identity_in_use_twice")).length > 0);
    expect((await machine.node()).statusMessage).toMatch(
      /^Two daemons use this node's identity at the same time, both on \S+\./,
    );
    const said = "another daemon is using this node's identity";
    await waitFor("both to say so", SOON_MS, async () => machine.daemon.log.includes(said) && copy.log.includes(said));
    expect(await messagesOf("identity_in_use_twice")).toHaveLength(1);
    expect(await machine.untilItAnswers()).toBe(ANSWER);
    expect(await machine.containers()).toEqual([engine]);
    expect(await machine.startedAt(engine)).toBe(startedAt);
  });
});
