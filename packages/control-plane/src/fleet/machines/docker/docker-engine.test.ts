import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { DockerEngine, DockerEngineError } from "./docker-engine.ts";

let folder: string;
let server: Server;
let asked: string[];
let minimum: string;
let down: number;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "fairlead-engine-"));
  asked = [];
  minimum = "1.12";
  down = 0;
  server = createServer(({ url = "" }, response) => {
    asked.push(url);
    if (down > 0) response.writeHead(500).end(`{"message": "down ${down--}"}`);
    else response.end(url === "/version" ? JSON.stringify({ ApiVersion: "1.99", MinAPIVersion: minimum }) : "{}");
  });
  await new Promise<void>((resolve) => server.listen(join(folder, "docker.sock"), resolve));
});

afterEach(() => {
  server.close();
  rmSync(folder, { recursive: true });
});

const engine = (): DockerEngine => new DockerEngine(join(folder, "docker.sock"));
const call = { method: "GET", path: "/info" } as const;

test.each([
  ["1.12", "/v1.41/info"],
  ["1.41", "/v1.41/info"],
  // Docker 29 refuses what is below.
  ["1.44", "/v1.44/info"],
])("an engine with the minimum version %s is called as %s, and asked for its version once", async (least, path) => {
  minimum = least;
  const docker = engine();
  await docker.json(call, z.object({}));
  await docker.send(call);
  expect(asked).toEqual(["/version", path, path]);
});

test("an engine whose version is unknown is asked again", async () => {
  down = 1;
  const docker = engine();
  await expect(docker.send(call)).rejects.toEqual(new DockerEngineError(500, "down 1"));
  await docker.send(call);
  expect(asked).toEqual(["/version", "/version", "/v1.41/info"]);
});
