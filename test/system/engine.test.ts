import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { describeWithDocker, docker, publishedPort } from "../support/docker.ts";
import { waitFor } from "../support/wait-for.ts";

const IMAGE = "fairlead/demo-engine:1";
const engine = new URL("../../packages/engine/", import.meta.url).pathname;

const goldenSchema = z.array(z.object({ messages: z.array(z.unknown()), answer: z.string() }));
const completionSchema = z.object({ choices: z.tuple([z.object({ message: z.object({ content: z.string() }) })]) });

describeWithDocker("the demo engine's image", () => {
  const golden = goldenSchema.parse(JSON.parse(readFileSync(`${engine}golden.json`, "utf8")));
  let container = "";
  let address = "";

  beforeAll(async () => {
    execFileSync(`${engine}image/build-image.sh`, { stdio: "inherit" });
    // What a node runs it with: a read-only root and no capabilities.
    const hardened = ["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"];
    const args = ["--alias", "tinychat-6m", "-np", "4", "-c", "8192", "-t", "1", "--cache-ram", "0", "--metrics"];
    container = await docker("run", "-d", ...hardened, "-p", "127.0.0.1::8080", IMAGE, ...args);
    address = `http://127.0.0.1:${await publishedPort(container, 8080)}`;
    await waitFor("the engine's health", 30_000, async () => (await fetch(`${address}/health`)).ok);
  });

  afterAll(async () => {
    if (container) await docker("rm", "-f", container);
  });

  test("returns every golden answer at temperature 0", async () => {
    const answers = [];
    for (const { messages } of golden) {
      const response = await fetch(`${address}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ messages, temperature: 0 }),
      });
      answers.push(completionSchema.parse(await response.json()).choices[0].message.content);
    }
    expect(answers).toEqual(golden.map(({ answer }) => answer));
  });

  test("names its model by the alias it was started with", async () => {
    const models = (await (await fetch(`${address}/v1/models`)).json()) as { data: { id: string }[] };
    expect(models.data.map(({ id }) => id)).toEqual(["tinychat-6m"]);
  });

  test("has the version of llama.cpp as a label", async () => {
    const labels = await docker("image", "inspect", "-f", "{{json .Config.Labels}}", IMAGE);
    expect(JSON.parse(labels)).toMatchObject({
      "org.opencontainers.image.version": expect.stringMatching(/^[\d:]*\d+\.\d+/),
    });
  });

  test("is not rebuilt while it is up to date", () => {
    expect(execFileSync(`${engine}image/build-image.sh`, { encoding: "utf8" })).toBe(`${IMAGE} is up to date\n`);
  });

  test("reports what to do when Docker does not respond", () => {
    const env = { ...process.env, DOCKER_HOST: "unix:///nowhere.sock" };
    expect(() => execFileSync(`${engine}image/build-image.sh`, { env, stdio: "pipe" })).toThrow(
      /no Docker engine answers\. Start it/,
    );
  });
});
