import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { describeWithDocker, ensureDemoImage } from "../support/docker.ts";
import { HttpHook } from "../support/http-hook.ts";
import { Installation } from "../support/installation.ts";
import type { Machine } from "../support/machine.ts";
import { twoFreePorts } from "../support/ports.ts";
import { waitFor } from "../support/wait-for.ts";

const root = new URL("../..", import.meta.url).pathname;
const PROGRAM = join(root, "packages/cli/bin/fairlead.js");
const PAGE = readFileSync(join(root, "docs/agents.md"), "utf8");
const HOOK_TOKEN = "hook-t0ken-77c1";
const TASK = "What is the capital of Japan?";
/** The model has several ways to say it. */
const ABOUT_TOKYO = expect.stringContaining("Tokyo");
const GONE_MS = 60_000;
const answerSchema = z.object({ answer: z.string(), model: z.string(), delivered: z.boolean() });

/** The walk-through of docs/agents.md as a person has it who copies every command into a shell. */
describeWithDocker("the commands in docs/agents.md", () => {
  let installation: Installation;
  let machine: Machine;
  let hook: HttpHook;
  let port: number;
  const dir = mkdtempSync("/dev/shm/fairlead-walk-");

  beforeAll(async () => {
    await ensureDemoImage();
    [port] = await twoFreePorts();
    hook = await HttpHook.open();
    installation = await Installation.start();
    machine = await installation.addMachine("Attic", { daemonArgs: ["--runtime-dir", join(dir, "run")] });
    machine.startDaemon();
    await machine.untilActive();
    await machine.untilItAnswers();
    writeFileSync(join(dir, "fairlead"), `#!/bin/sh\nexec "${process.execPath}" "${PROGRAM}" "$@"\n`);
    chmodSync(join(dir, "fairlead"), 0o755);
  });
  afterAll(async () => {
    await installation?.remove();
    await hook?.close();
    rmSync(dir, { recursive: true, force: true });
  });

  /** The commands that the page has in its fences for a shell, one fence after the other. */
  const [, walk = ""] = PAGE.split(/^## /m);
  const fences = Array.from(walk.matchAll(/^```sh\n([\s\S]*?)^```/gm), ([, commands = ""]) => commands);

  /** Ends what it left running, and fails where a command does. */
  async function copied(commands: string): Promise<{ code: number; out: string; notes: string }> {
    const script = `set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n${commands}`;
    const env = {
      ...installation.environment,
      PATH: `${dir}:${process.env["PATH"]}`,
      HOME: dir,
      FAIRLEAD_NODE_ID: machine.nodeId,
      FAIRLEAD_MODEL: machine.model,
      HOOK_URL: hook.url,
      HOOK_TOKEN,
    };
    try {
      const argv = ["-c", script.replaceAll("9000", String(port))];
      const { stdout, stderr } = await promisify(execFile)("bash", argv, { cwd: root, env });
      return { code: 0, out: stdout, notes: stderr };
    } catch (error) {
      const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
      return { code, out: stdout, notes: stderr };
    }
  }

  /** What the agent answered, among what else was printed. */
  function answerIn(out: string): z.infer<typeof answerSchema> {
    return answerSchema.parse(JSON.parse(/\{"answer".*\}/.exec(out)?.[0] ?? "null"));
  }

  test("are in as many code blocks as this test runs", () => {
    expect(fences).toHaveLength(5);
  });

  test("create an agent, start it and show its progress", async () => {
    const { code, out, notes } = await copied(fences[0] ?? "");
    expect({ code, notes }).toMatchObject({ code: 0, notes: expect.stringMatching(/^running: /m) });
    expect(out).toMatch(/^state +running$/m);
  });

  test("give it a task through a forwarded port and print the model's response", async () => {
    const { code, out, notes } = await copied(fences[1] ?? "");
    expect({ code, notes }).toMatchObject({ code: 0 });
    expect(answerIn(out)).toEqual({ answer: ABOUT_TOKYO, model: machine.model, delivered: false });
  });

  test("show what it did and add a connector", async () => {
    const { code, out, notes } = await copied(fences[2] ?? "");
    expect({ code, notes }).toMatchObject({ code: 0 });
    for (const shown of ["The demo agent is listening on port", "reported_ready", "HTTP_CONNECTOR_TOKEN"])
      expect(out).toContain(shown);
  });

  test("name the missing secrets when the start is refused", async () => {
    const { code, notes } = await copied(fences[3] ?? "");
    expect(code).toBe(1);
    for (const name of ["HTTP_CONNECTOR_TOKEN", "HTTP_CONNECTOR_URL"])
      expect(notes).toMatch(new RegExp(`^  fairlead agent secret put agt_\\w+ ${name}$`, "m"));
  });

  test("set its secrets, send the response to the connector too, limit the agent and delete it", async () => {
    const { code, out, notes } = await copied(fences[4] ?? "");
    expect({ code, notes }).toMatchObject({ code: 0 });
    const { answer, delivered } = answerIn(out);
    expect({ answer, delivered }).toEqual({ answer: ABOUT_TOKYO, delivered: true });
    expect(out).toMatch(/^limits +60 requests\/min, .*per day$/m);
    expect(hook.deliveries).toMatchObject([{ authorization: `Bearer ${HOOK_TOKEN}`, body: { task: TASK, answer } }]);
    await waitFor("the end of it", GONE_MS, async () => {
      return (await copied("fairlead agent get scribe")).notes.includes('no agent named "scribe"');
    });
  });
});
