import { readFileSync } from "node:fs";
import { join } from "node:path";
import { nodeSecretSchema } from "@fairlead/protocol/secrets";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import type { Machine } from "../support/machine.ts";
import { waitFor } from "../support/wait-for.ts";
import { EVERY_DRILL } from "./stage/every-drill.ts";
import { expectSettled, type Outcome } from "./stage/settled.ts";
import { configure, describeOnStage, LOGIN, putSecret, Stage, TOKEN } from "./stage/stage.ts";

const SOON_MS = 60_000;
const WRONG = "c4nary-wr0ng-6b1e";
const NEXT_LOGIN = { username: LOGIN.username, password: "c4nary-l0gin-next-5f20" };
const NEXT_TOKEN = "c4nary-t0ken-next-77aa\n\n";
const KEY = "c4nary-k3y-90c4";
const NEXT_KEY = "c4nary-k3y-next-2d13";
const REFUSED = /cannot pull .* denied access to /;
const VALUES = { secrets: [WRONG, NEXT_LOGIN.password, NEXT_TOKEN.trim()], variables: [KEY, NEXT_KEY] };

/** One node from its first pull on: its image behind a login, a secret as a file and one as a variable, each of the three changed. */
describeOnStage("an engine with secrets whose image requires a login", () => {
  let stage: Stage;
  let machine: Machine;

  beforeAll(async () => {
    stage = await Stage.create();
    machine = await stage.addMachine("Private", await config("v1"));
    await put("REGISTRY", stage.loginText({ ...LOGIN, password: WRONG }));
    await put("KEY", KEY);
  });
  afterAll(() => stage?.remove());

  const config = async (version: string): Promise<object> =>
    stage.engineConfig(await stage.image(version), { secrets: { TOKEN: { as: "file" }, KEY: { as: "env" } } });
  const put = (name: string, value: string): Promise<void> => putSecret(stage.installation, machine, [name, value]);
  const settled = (outcome: Pick<Outcome, "serves" | "because">): Promise<void> =>
    expectSettled(stage, machine, { ...outcome, ...VALUES });

  async function engine(): Promise<{ readonly id: string; readonly startedAt: string }> {
    const [id = ""] = await machine.running();
    return { id, startedAt: await machine.startedAt(id) };
  }
  const inside = async (...command: readonly string[]): Promise<string> =>
    machine.docker("exec", (await engine()).id, "/bin/busybox", ...command);
  const fileOf = (): string => {
    const [folder = ""] = stage.secretFolders(machine);
    return readFileSync(join(stage.runtimeDir, "secrets", machine.nodeId, folder, "TOKEN"), "utf8");
  };

  test("waits while the login is wrong, and the node reports why", async () => {
    machine.startDaemon();
    await settled({ serves: null, because: REFUSED });
    await waitFor("the node to say so itself", SOON_MS, async () => REFUSED.test((await machine.node()).statusMessage));
    expect((await machine.node()).status).not.toBe("active");
  });

  test("runs as soon as the login is correct, with each secret byte for byte where its config puts it", async () => {
    await put("REGISTRY", stage.loginText());
    await settled({ serves: "v1" });
    expect(fileOf()).toBe(TOKEN);
    expect(await inside("cat", "/run/secrets/TOKEN")).toBe(TOKEN.trim());
    expect(await inside("sh", "-c", "echo $KEY")).toBe(KEY);
    // What the config chose by `env`: all other places are looked through whenever the node has settled.
    expect(await machine.docker("inspect", (await engine()).id)).toContain(KEY);
    expect(await inside("sh", "-c", "env; ls /run/secrets")).not.toMatch(/REGISTRY|TOKEN=/);
  });

  if (EVERY_DRILL)
    test("sees a changed file without a restart, and is replaced when a variable changes", async () => {
      const before = await engine();
      await put("TOKEN", NEXT_TOKEN);
      await waitFor("the file to change", SOON_MS, async () => fileOf() === NEXT_TOKEN);
      expect(await inside("cat", "/run/secrets/TOKEN")).toBe(NEXT_TOKEN.trim());
      await settled({ serves: "v1" });
      expect(await engine()).toEqual(before);
      await put("KEY", NEXT_KEY);
      await waitFor("another container", SOON_MS, async () => !(await machine.running()).includes(before.id));
      await settled({ serves: "v1" });
      expect(await inside("sh", "-c", "echo $KEY; cat /run/secrets/TOKEN")).toBe(`${NEXT_KEY}\n${NEXT_TOKEN.trim()}`);
    });

  if (EVERY_DRILL)
    test("keeps serving when the registry's password changes, and is updated as soon as the node has the new one", async () => {
      const before = await engine();
      const next = await config("v2");
      stage.changeLogin(NEXT_LOGIN);
      await configure(stage.installation, machine, next);
      await settled({ serves: "v1", because: REFUSED });
      expect(await engine()).toEqual(before);
      await put("REGISTRY", stage.loginText(NEXT_LOGIN));
      await settled({ serves: "v2" });
      expect(fileOf()).toBe(NEXT_TOKEN);
    });

  if (EVERY_DRILL)
    test("has its secrets listed with only names and versions", async () => {
      const answer = await stage.installation.call("GET", `/v1/nodes/${machine.nodeId}/secrets`);
      const text = await answer.text();
      const list = z.object({ secrets: z.array(nodeSecretSchema) }).parse(JSON.parse(text));
      expect(list.secrets.map(({ name, version }) => [name, version])).toEqual([
        ["KEY", 2],
        ["REGISTRY", 4],
        ["TOKEN", 2],
      ]);
      expect(text).not.toContain("c4nary");
    });
});
