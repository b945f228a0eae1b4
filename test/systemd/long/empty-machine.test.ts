import { afterAll, beforeAll, expect, test } from "vitest";
import { DEMO_IMAGE } from "../../support/docker.ts";
import { ANSWER } from "../../support/machine.ts";
import type { BoxedNode } from "../stage/boxed-node.ts";
import { describeOnSystemd, Field } from "../stage/field.ts";
import { differences, type Files, filesOf } from "../stage/files.ts";

const NO_DOCKER =
  "DEBIAN_FRONTEND=noninteractive apt-get purge -y docker.io containerd runc && rm -rf /var/lib/docker/*";

/** A machine that has nothing but Debian. */
describeOnSystemd("install.sh on a machine without Docker", () => {
  let field: Field;
  let node: BoxedNode;
  let empty: Files;

  beforeAll(async () => {
    field = await Field.create();
    node = await field.addNode("bookworm");
    await node.box.run(NO_DOCKER);
    empty = await filesOf(node.box);
  });

  afterAll(() => field?.remove());

  test("says in a dry run that Docker would be installed, and changes nothing", async () => {
    const { code, out } = await node.install(["--dry-run", "--insecure"], await node.token());
    expect(code).toBe(0);
    expect(out).toContain("the distribution's docker.io would be installed");
    expect(differences(empty, await filesOf(node.box))).toEqual([]);
  });

  test("says what is missing and changes nothing if it cannot prompt", async () => {
    const { code, out, errors } = await node.install(["--insecure"], await node.token());
    expect(code).toBe(1);
    expect(out).toContain("BAD   Docker is not installed: run this with --yes");
    expect(errors).toContain("Nothing was installed.");
    expect(differences(empty, await filesOf(node.box))).toEqual([]);
  });

  test("with --yes installs Docker from the distribution, and the machine becomes a node that serves", async ({
    skip,
  }) => {
    if ((await node.box.try("apt-get update")).code !== 0) skip("no Debian mirror is reached from a container here");
    const { code, out, errors } = await node.install(["--insecure", "--yes"], await node.token());
    expect({ code, errors }, out).toEqual({ code: 0, errors: "" });
    expect(out).toMatch(/ok +Docker \S+, newly installed/);
    await node.box.copyImage(DEMO_IMAGE);
    await node.untilActive();
    expect(await node.machine.untilItAnswers()).toBe(ANSWER);
  });
});
