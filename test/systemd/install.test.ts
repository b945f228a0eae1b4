import { afterAll, beforeAll, expect, test } from "vitest";
import { ANSWER } from "../support/machine.ts";
import type { BoxedNode } from "./stage/boxed-node.ts";
import { describeOnSystemd, Field, VERSION } from "./stage/field.ts";
import { differences, type Files, filesOf } from "./stage/files.ts";
import { judge, promisedExposure } from "./stage/units.ts";

/** The way of docs/install.md on an empty Debian 12, and back. */
describeOnSystemd("install.sh", () => {
  let field: Field;
  let node: BoxedNode;
  let empty: Files;

  beforeAll(async () => {
    field = await Field.create();
    node = await field.addNode("bookworm");
    empty = await filesOf(node.box);
  });

  afterAll(() => field?.remove());

  test("says in a dry run what it would do, and changes nothing", async () => {
    const { code, out, errors } = await node.install(["--dry-run", "--insecure"], await node.token());
    expect({ code, errors }, out).toEqual({ code: 0, errors: "" });
    expect(out).toContain(`build ${VERSION} for x64 would be installed`);
    expect(differences(empty, await filesOf(node.box))).toEqual([]);
  });

  test("rejects a platform on plain HTTP without --insecure", async () => {
    const { code, errors } = await node.install([], await node.token());
    expect(code).toBe(1);
    expect(errors).toContain("is plain HTTP to another machine");
  });

  test("rejects a truncated token, and a missing one", async () => {
    const half = await node.install(["--insecure"], (await node.token()).slice(0, 60));
    expect(half.code).toBe(1);
    expect(half.errors).toContain("the bootstrap token is invalid or incomplete");
    const none = await node.install(["--insecure", "--no-start"]);
    expect(none.code).toBe(0);
    const started = await node.install(["--insecure"]);
    expect(started.code).toBe(1);
    expect(started.errors).toContain("this machine is not enrolled and there is no token");
  });

  test("uninstalls an incomplete installation without leaving a file", async () => {
    expect(await node.install(["--uninstall"])).toMatchObject({ code: 0, errors: "" });
    expect(differences(empty, await filesOf(node.box))).toEqual([]);
  });

  test("makes the machine a node that serves, with a token from the environment", async () => {
    const token = await node.token();
    const { code, out, errors } = await node.install(["--insecure"], token);
    expect({ code, errors }, out).toEqual({ code: 0, errors: "" });
    expect(out).toContain(`This machine is node ${node.machine.nodeId}.`);
    await node.untilActive();
    expect(await node.machine.untilItAnswers()).toBe(ANSWER);
    expect(await node.box.run("systemctl is-enabled fairlead-daemon")).toBe("enabled");
  });

  test("leaves the used token nowhere on the machine: in no file, log or environment", async () => {
    const body = "[A-Za-z0-9_-]{20}";
    const found =
      await node.box.try(`grep -rIlE 'flb_${body}' /etc /opt/fairlead-daemon/current/systemd /var /root /run/fairlead-daemon 2>/dev/null
      journalctl --no-pager | grep -E 'flb_${body}'
      cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -E 'flb_${body}'`);
    expect(found.out).toBe("");
  });

  test("installs a unit without mistakes that is no more exposed than docs/install.md says", async () => {
    const { mistakes, exposure } = await judge(node.box, "fairlead-daemon.service");
    expect(mistakes).toBe("");
    expect(exposure).toBeLessThanOrEqual(promisedExposure("daemon"));
  });

  test("repairs the unit, the link and files of the build when run again without a token, and the engine keeps running", async () => {
    const engine = await node.engine();
    await node.box.run(`rm /etc/systemd/system/fairlead-daemon.service /usr/local/bin/fairlead-daemon
      ln -sfn versions/gone /opt/fairlead-daemon/current
      rm /opt/fairlead-daemon/versions/${VERSION}/bin/fairlead-daemon`);
    const { code, out, errors } = await node.install(["--insecure", "--version", VERSION]);
    expect({ code, errors }, out).toEqual({ code: 0, errors: "" });
    expect(await node.box.run("fairlead-daemon --version")).toContain(VERSION);
    await node.untilActive();
    expect(await node.engine()).toEqual(engine);
  });

  test("enrolls the machine again with --token-file, and the engine keeps running", async () => {
    const engine = await node.engine();
    await node.box.run(`umask 077; printf '%s' '${await node.token()}' >/root/token`);
    const { code, out, errors } = await node.install(["--insecure", "--token-file", "/root/token"]);
    await node.box.run("rm /root/token");
    expect({ code, errors }, out).toEqual({ code: 0, errors: "" });
    expect(await node.machine.untilItAnswers()).toBe(ANSWER);
    expect(await node.engine()).toEqual(engine);
  });

  test("leaves no files or containers after --uninstall with --containers", async () => {
    const { code, out, errors } = await node.install(["--uninstall", "--containers"]);
    expect({ code, errors }, out).toEqual({ code: 0, errors: "" });
    expect(differences(empty, await filesOf(node.box))).toEqual([]);
    expect(await node.box.run("docker ps -aq; docker volume ls -q; ls /run/fairlead-daemon 2>/dev/null || true")).toBe(
      "",
    );
    expect(await node.box.run("systemctl list-units --all --no-legend 'fairlead*'")).toBe("");
  });
});
