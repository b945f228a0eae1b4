import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AgentLifecycleState, agentSchema } from "@fairlead/protocol/agents";
import { PROTOCOL_VERSIONS } from "@fairlead/protocol/daemon-link";
import { nodeEventSchema, nodeSchema } from "@fairlead/protocol/resources";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { openLocalAdmin } from "../../packages/control-plane/src/installation/admin/local-admin.ts";
import { loadConfig } from "../../packages/control-plane/src/installation/config/config.ts";
import { type RunningServer, startServer } from "../../packages/control-plane/src/server.ts";
import { type Api, apiAt } from "../../scripts/quickstart-steps/fairlead.ts";
import { RecordedDaemon } from "../support/recorded-daemon.ts";
import { type Recording, recordingSchema } from "../support/recording.ts";

const withId = z.object({ id: z.string() });

interface Played {
  readonly nodeId: string;
  readonly agentId: string;
}

/** Daemons are updated after their server, and some much later: each version that is still spoken was recorded when it was new. */
describe.each(PROTOCOL_VERSIONS.map((version) => ({ version })))(
  "a recorded daemon of protocol $version",
  ({ version }) => {
    const dir = mkdtempSync(join(tmpdir(), "fairlead-skew-"));
    let recording: Recording;
    let server: RunningServer;
    let api: Api;

    beforeAll(async () => {
      const file = new URL(`../fixtures/daemon-link-v${version}.json`, import.meta.url);
      recording = recordingSchema.parse(JSON.parse(readFileSync(file, "utf8")));
      const config = loadConfig({
        env: {
          FAIRLEAD_DATA_DIR: dir,
          FAIRLEAD_SERVER_PLATFORM_PORT: "0",
          FAIRLEAD_SERVER_INFERENCE_PORT: "0",
          FAIRLEAD_LOG_LEVEL: "silent",
        },
      });
      server = await startServer(config);
      const admin = await openLocalAdmin(config);
      await admin.createUser({ email: "ann@example.org", name: "Ann", platformAdmin: false });
      api = apiAt(server.platformUrl, (await admin.createToken({ email: "ann@example.org" })).token);
    });

    afterAll(async () => {
      await server?.close();
      rmSync(dir, { recursive: true });
    });

    /** Plays the whole recording as a new node, on which an agent is started and stopped where the recording says so. */
    async function play(alter?: (said: unknown) => unknown): Promise<Played> {
      const { project } = await api.create("/v1/projects", { name: "Skew" }, z.object({ project: withId }));
      const request = { projectId: project.id, planId: "byo", name: "Box", engineConfig: { preset: "fairlead-demo" } };
      const { node } = await api.create("/v1/nodes", request, z.object({ node: withId }));
      const path = `/v1/nodes/${node.id}/bootstrap-tokens`;
      const { token: bootstrapToken } = await api.create(path, {}, z.object({ token: z.string() }));
      const guest = { guest: "fairlead-demo-agent", runtimeProvider: `node:${node.id}` };
      const asked = { projectId: project.id, name: "Night shift", ...guest };
      const { agent } = await api.create("/v1/agents", asked, z.object({ agent: withId }));
      const scenes = {
        "agent:start": () => api.create(`/v1/agents/${agent.id}:start`, {}, agentSchema),
        "agent:stop": async () => {
          await expectAgent(agent.id, "running");
          await api.create(`/v1/agents/${agent.id}:stop`, {}, agentSchema);
        },
      };
      const stage = {
        platformUrl: server.platformUrl,
        nodeId: node.id,
        bootstrapToken,
        scenes,
        ...(alter ? { alter } : {}),
      };
      const daemon = new RecordedDaemon(recording, stage);
      try {
        await daemon.play();
      } finally {
        daemon.close();
      }
      return { nodeId: node.id, agentId: agent.id };
    }

    const expectAgent = (id: string, lifecycleState: AgentLifecycleState): Promise<void> =>
      expect.poll(() => api.find(`/v1/agents/${id}`, agentSchema)).toMatchObject({ lifecycleState });

    async function expectAtWork({ nodeId, agentId }: Played): Promise<void> {
      await expectAgent(agentId, "stopped");
      expect(await api.find(`/v1/nodes/${nodeId}`, nodeSchema)).toMatchObject({ status: "active" });
      const version = await api.find(`/v1/nodes/${nodeId}/engine-version`, z.object({ version: z.string() }));
      expect(version?.version).not.toBe("");
      const page = await api.find(`/v1/nodes/${nodeId}/events`, z.object({ events: z.array(nodeEventSchema) }));
      const kinds = page?.events.map((event) => event.kind);
      expect(kinds).toEqual(
        expect.arrayContaining(["enrolled", "container_created", "workload_started", "reported_ready"]),
      );
    }

    test("enrolls, links, reports, becomes active, and returns after a restart", async () => {
      expect(recording.protocolVersion).toBe(version);
      await expectAtWork(await play());
    });

    test("may send fields that this server does not know, in every object of every message", async () => {
      await expectAtWork(await play(withUnknownFields));
    });
  },
);

function withUnknownFields(said: unknown): unknown {
  if (Array.isArray(said)) return said.map(withUnknownFields);
  if (typeof said !== "object" || said === null) return said;
  const known = Object.entries(said).map(([name, value]) => [name, withUnknownFields(value)]);
  return { ...Object.fromEntries(known), fromTheFuture: { deep: [{ er: true }] } };
}
