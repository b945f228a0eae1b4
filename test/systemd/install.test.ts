import { afterAll, beforeAll, expect, test } from "vitest";
import { ANSWER } from "../support/machine.ts";
import type { BoxedNode } from "./stage/boxed-node.ts";
import { describeOnSystemd, Field, VERSION } from "./stage/field.ts";
import { differences, type Files, filesOf } from "./stage/files.ts";

/** The way of docs/install.md on an empty Debian machine, and back. */
describeOnSystemd("install.sh on Debian 12", () => {
  let field: Field;
  let node: BoxedNode;
  let empty: Files;

  beforeAll(async () => {
    field = await Field.create();
    node = await field.addNode("bookworm");
    empty = await filesOf(node.box);
  });

  afterAll(() => field?.remove());

  test("a dry run says what would be done, and changes nothing", async () => {
    const { code, out, errors } = await node.install(
      ["--dry-run", "--insecure"],
      `FAIRLEAD_BOOTSTRAP_TOKEN=${await node.token()}`,
    );
    expect({ code, errors }, out).toEqual({ code: 0, errors: "" });
    expect(out).toContain(`build ${VERSION} for x64 would be installed`);
    expect(differences(empty, await filesOf(node.box))).toEqual([]);
  });

  test("a platform on plain http is refused without --insecure, and nothing is installed", async () => {
    const { code, errors } = await node.install([], `FAIRLEAD_BOOTSTRAP_TOKEN=${await node.token()}`);
    expect(code).toBe(1);
    expect(errors).toContain("is plain http to another machine");
    expect(differences(empty, await filesOf(node.box))).toEqual([]);
  });

  test("with a token in the environment the machine becomes a node that answers", async () => {
    const token = await node.token();
    const { code, out, errors } = await node.install(["--insecure"], `FAIRLEAD_BOOTSTRAP_TOKEN=${token}`);
    expect({ code, errors }, out).toEqual({ code: 0, errors: "" });
    await node.untilActive();
    expect(await node.machine.untilItAnswers()).toBe(ANSWER);
  });
});
