import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { Machine } from "../support/machine.ts";
import { waitFor } from "../support/wait-for.ts";
import { EVERY_DRILL } from "./stage/every-drill.ts";
import { expectSettled } from "./stage/settled.ts";
import { configure, describeOnStage, LOGIN, putSecret, Stage } from "./stage/stage.ts";

const SOON_MS = 60_000;
/** A pull without news is given up after two minutes. */
const GIVEN_UP_MS = 150_000;

/** A registry that fails, in the middle of an update. The engine that runs serves on, and the update is done once the registry is well. */
describeOnStage("while the registry", () => {
  let stage: Stage;
  let machine: Machine;

  beforeAll(async () => {
    stage = await Stage.create();
    machine = await stage.addMachine("Pulling", stage.engineConfig(await stage.image("v1")));
    machine.startDaemon();
    await expectSettled(stage, machine, { serves: "v1" });
  });

  afterEach(() => stage.registry.turn("none"));
  afterAll(() => stage?.remove());

  const update = async (image: string): Promise<void> => {
    await configure(stage.installation, machine, stage.engineConfig(image));
  };

  test("fails with 500, the node reports it and keeps serving, and the pull is retried", async () => {
    const image = await stage.image("v2");
    stage.registry.turn("failing");
    await update(image);
    await expectSettled(stage, machine, { serves: "v1", because: /cannot pull .*500 Internal Server Error/ });
    stage.registry.turn("none");
    await expectSettled(stage, machine, { serves: "v2" });
  });

  test("is slow, the node shows the progress", async () => {
    const image = await stage.image("v3", "large");
    stage.registry.turn("slow");
    await update(image);
    const percent = /pulling \S+: ([1-9]\d?) %/;
    await waitFor("the progress", SOON_MS, async () => percent.test((await machine.node()).statusMessage));
    await expectSettled(stage, machine, { serves: "v3" });
  });

  test("rejects the login, the node reports it without the login, and the correct one is used as soon as it is set", async () => {
    const image = await stage.image("v4");
    const came = (): number => machine.daemon.log.split("received a secret").length;
    const before = came();
    await putSecret(stage.installation, machine, ["REGISTRY", stage.loginText({ ...LOGIN, password: "wrong" })]);
    await waitFor("the wrong login to come", SOON_MS, async () => came() > before);
    await update(image);
    await expectSettled(stage, machine, { serves: "v3", because: /cannot pull .* denied access to / });
    await putSecret(stage.installation, machine, ["REGISTRY", stage.loginText()]);
    await expectSettled(stage, machine, { serves: "v4" });
  });

  test("does not have the digest, the node reports it, and the next config is applied", async () => {
    const image = await stage.image("v5");
    stage.registry.turn("missing");
    await update(image);
    await expectSettled(stage, machine, { serves: "v4", because: /cannot pull .* was not found in the registry / });
    expect((await machine.node()).status).toBe("active");
    stage.registry.turn("none");
    await update(await stage.image("v6"));
    await expectSettled(stage, machine, { serves: "v6" });
  });

  if (EVERY_DRILL)
    test("has moved a tag to another image, the node keeps the image it has, and reports its digest", async () => {
      const digestOf = (reference: string): string => reference.slice(reference.indexOf("@") + 1);
      const runs = async (): Promise<object | undefined> => (await machine.node()).workloads[0];
      const was = await stage.moveTag("moving", "v6-as-it-was");
      await update(was.byTag);
      await expectSettled(stage, machine, { serves: "v6-as-it-was" });
      const is = await stage.moveTag("moving", "v6-as-it-is");
      const [before = ""] = await machine.running();
      await stage.installation.call("POST", `/v1/nodes/${machine.nodeId}:restart-workload`);
      await waitFor("a new container", SOON_MS, async () => !(await machine.running()).includes(before));
      await expectSettled(stage, machine, { serves: "v6-as-it-was" });
      expect(await runs()).toMatchObject({ image: was.byTag, imageDigest: digestOf(was.byDigest), upToDate: true });
      await update(is.byDigest);
      await expectSettled(stage, machine, { serves: "v6-as-it-is" });
      expect(await runs()).toMatchObject({ image: is.byDigest, imageDigest: digestOf(is.byDigest), upToDate: true });
    });

  test("hangs, another config that needs no pull is applied immediately", async () => {
    const image = await stage.image("v7");
    stage.registry.turn("hung");
    await update(image);
    await waitFor("the pull to begin", SOON_MS, async () => machine.daemon.log.includes(`pull ${image}`));
    await update(await stage.image("v6"));
    await expectSettled(stage, machine, { serves: "v6" });
  });

  // Docker itself gives up where nothing is answered at all.
  const endless = [
    { what: "does not respond", fault: "hung", version: "v8", because: /cannot pull .* timeout/ },
    {
      what: "stalls in a layer",
      fault: "stalled",
      version: "v9",
      because: /cannot pull .*the pull made no progress for 120 s/,
    },
  ] as const;
  test.each(EVERY_DRILL ? endless : [])("$what, the pull times out, is reported, and is retried", async (drill) => {
    const { fault, version, because } = drill;
    const image = await stage.image(version, "large");
    const before = await machine.ask();
    stage.registry.turn(fault);
    await update(image);
    await waitFor("the pull to be given up", GIVEN_UP_MS, async () =>
      (await machine.events()).some(({ kind, message }) => kind === "step_failed" && message.includes(image)),
    );
    await expectSettled(stage, machine, { serves: before, because });
    stage.registry.turn("none");
    await expectSettled(stage, machine, { serves: version });
  });
});
