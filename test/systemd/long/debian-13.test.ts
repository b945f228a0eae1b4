import { afterAll, beforeAll, expect, test } from "vitest";
import { ANSWER } from "../../support/machine.ts";
import type { BoxedNode } from "../stage/boxed-node.ts";
import { describeOnSystemd, Field } from "../stage/field.ts";
import { differences, type Files, filesOf } from "../stage/files.ts";

/** The life of a node on the newer Debian, in short. */
describeOnSystemd(
  "a node on Debian 13",
  () => {
    let field: Field;
    let node: BoxedNode;
    let empty: Files;

    beforeAll(async () => {
      field = await Field.create();
      node = await field.addNode("trixie");
      empty = await filesOf(node.box);
    });

    afterAll(() => field?.remove());

    test("can be installed and serves", async () => {
      await node.join();
      expect(await node.machine.untilItAnswers()).toBe(ANSWER);
      expect(await node.box.run("systemd-analyze verify /etc/systemd/system/fairlead-daemon.service 2>&1")).toBe("");
    });

    test("runs its engine again after a reboot, and is active", async () => {
      const { container } = await node.engine();
      await node.box.reboot();
      await node.untilActive();
      expect(await node.machine.untilItAnswers()).toBe(ANSWER);
      expect((await node.engine()).container).toBe(container);
    });

    test("keeps its engine running while the daemon is killed", async () => {
      const [engine, pid] = [await node.engine(), await node.mainPid()];
      await node.box.run(`kill -9 ${pid}`);
      await node.untilAnotherPid(pid);
      expect(await node.machine.untilItAnswers()).toBe(ANSWER);
      expect(await node.engine()).toEqual(engine);
    });

    test("can be uninstalled without leaving a file", async () => {
      const { code, out, errors } = await node.install(["--uninstall", "--containers"]);
      expect({ code, errors }, out).toEqual({ code: 0, errors: "" });
      expect(differences(empty, await filesOf(node.box))).toEqual([]);
      expect(await node.box.run("docker ps -aq; docker volume ls -q")).toBe("");
    });
  },
  "trixie",
);
