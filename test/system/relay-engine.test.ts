import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type WorkloadConnect, workloadConnectSchema } from "@fairlead/protocol/workload-connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Installation } from "../support/installation.ts";
import type { Machine } from "../support/machine.ts";
import { waitFor } from "../support/wait-for.ts";

const WAIT_MS = 30_000;

let installation: Installation;
let machine: Machine;

beforeAll(async () => {
  installation = await Installation.start();
  machine = await installation.addMachine("Box");
  machine.startDaemon();
  await machine.untilActive();
});
afterAll(() => installation.remove());

async function models({ gatewayUrl, authToken }: WorkloadConnect): Promise<string> {
  const answer = await fetch(`${gatewayUrl}/v1/models`, { headers: { authorization: `Bearer ${authToken}` } });
  expect(answer.status).toBe(200);
  return answer.text();
}

test("a real engine behind a real daemon is reachable through the relay", async () => {
  const path = `/v1/nodes/${machine.nodeId}/workload-connect`;
  const way = await installation.api.find(path, workloadConnectSchema);
  if (way === null) throw new Error("the node is gone");
  expect(await models(way)).toContain("tinychat");
});

test("the engine finds its own address and a token for it in its folder, and both work", async () => {
  const [container = ""] = await machine.running();
  // The engine's image has no programs to look with: what it mounts is read from the machine's side.
  const format = '{{range .Mounts}}{{if eq .Destination "/run/secrets"}}{{.Source}}{{end}}{{end}}';
  const folder = await machine.docker("inspect", "-f", format, container);
  const file = (name: string): Promise<string> => readFile(join(folder, name), "utf8");
  const authToken = await waitFor("the files", WAIT_MS, () => file("fairlead-gateway-token"));
  const gatewayUrl = await file("fairlead-gateway-url");
  expect(gatewayUrl).toBe(`${installation.platformUrl}/v1/nodes/${machine.nodeId}/gateway`);
  expect(await models({ gatewayUrl, authToken })).toContain("tinychat");
});
