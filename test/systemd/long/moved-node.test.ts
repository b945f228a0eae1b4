import { afterAll, beforeAll, expect, test } from "vitest";
import { ANSWER } from "../../support/machine.ts";
import { BoxedNode, type EngineRun } from "../stage/boxed-node.ts";
import { describeOnSystemd, Field } from "../stage/field.ts";

/** One node, and two machines that take its identity from each other. */
describeOnSystemd("a node that is enrolled on another machine", () => {
  let field: Field;
  let first: BoxedNode;
  let second: BoxedNode;
  let engine: EngineRun;

  beforeAll(async () => {
    field = await Field.create();
    first = await field.addNode("bookworm");
    await first.join();
    engine = await first.engine();
    second = new BoxedNode(field.installation, await field.boot("bookworm"), first.machine);
    await second.join();
  });

  afterAll(() => field?.remove());

  test("stays down on the first one, where its engine keeps running", async () => {
    await first.untilRefused();
    expect(await first.box.run("systemctl is-failed fairlead-daemon")).toBe("failed");
    expect(await first.engine()).toEqual(engine);
    expect(await second.machine.untilItAnswers()).toBe(ANSWER);
  });

  test("stays down there after a manual start and after a reboot, without a restart loop", async () => {
    await first.box.try("systemctl start fairlead-daemon");
    await first.untilRefused();
    await first.box.reboot();
    await first.untilRefused();
    expect(await first.property("NRestarts")).toBe("0");
  });

  test("makes the installer without a token report that the platform rejects it, and what to do", async () => {
    const { code, errors } = await first.install(["--insecure"]);
    expect(code).toBe(1);
    expect(errors).toContain("the platform rejects this node");
    expect(errors).toContain("fairlead node bootstrap-token");
  });

  test("returns to the first one with a new token, and then stays down on the second", async () => {
    await first.join();
    expect(await first.machine.untilItAnswers()).toBe(ANSWER);
    await second.untilRefused();
  });
});
