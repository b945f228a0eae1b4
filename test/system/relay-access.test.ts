import { once } from "node:events";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { z } from "zod";
import { answerOf, headOf, relayRequest } from "../support/relay-call.ts";
import { type Person, RelayStage, type StagedNode } from "../support/relay-stage.ts";
import { waitFor } from "../support/wait-for.ts";

const WAIT_MS = 60_000;

let stage: RelayStage;
let owner: Person;
let projectId: string;
let node: StagedNode;

beforeAll(async () => {
  stage = await RelayStage.start();
});
afterAll(() => stage.stop());
beforeEach(async () => {
  owner = await stage.addPerson();
  projectId = await stage.addProject(owner);
  node = await stage.addNode(owner, projectId);
  node.engine.script = (_request, response) => response.end("engine");
});

const pathOf = ({ id }: { readonly id: string }): string => `/v1/nodes/${id}`;

async function addAdmin(): Promise<Person> {
  const admin = await stage.addPerson();
  await stage.join(projectId, admin, "admin");
  return admin;
}

/** A stream of the engine's that goes on until somebody ends it, and a WebSocket, both open. */
async function openBoth(person: Person): Promise<{ streamCut: Promise<unknown>; socketCut: Promise<unknown> }> {
  const way = await stage.connect(person.token, node.id);
  const engineSockets = new WebSocketServer({ noServer: true });
  node.engine.server.once("upgrade", (request, socket, head) =>
    engineSockets.handleUpgrade(request, socket, head, () => undefined),
  );
  node.engine.script = (_request, response) => response.writeHead(200).write("begun");
  const answer = await headOf(relayRequest(way).end());
  const socket = new WebSocket(way.gatewayUrl.replace("http", "ws"), [`fairlead.token.${way.authToken}`]);
  socket.on("error", () => undefined);
  await once(socket, "open");
  const streamCut = text(answer).then(
    () => "it ended as if whole",
    (error: unknown) => error,
  );
  return { streamCut, socketCut: once(socket, "close").then(([code]) => code) };
}

describe("workload-connect", () => {
  test("returns the interface's two fields and no others", async () => {
    const answer = await stage.call(
      { token: owner.token, path: `${pathOf(node)}/workload-connect` },
      z.record(z.string(), z.string()),
    );
    expect(Object.keys(answer).toSorted()).toEqual(["authToken", "gatewayUrl"]);
    expect(answer["gatewayUrl"]).toBe(`${stage.url}/v1/nodes/${node.id}/gateway`);
  });

  test.each(["", "?workloadType=WORKLOAD_TYPE_UNSPECIFIED", "?workloadType=WORKLOAD_TYPE_ENGINE"])(
    "treats %j as the engine",
    async (query) => {
      const way = await stage.call(
        { token: owner.token, path: `${pathOf(node)}/workload-connect${query}` },
        z.object({ gatewayUrl: z.string(), authToken: z.string() }),
      );
      expect((await answerOf(relayRequest(way))).text).toBe("engine");
    },
  );

  test.each([
    "?workloadType=WORKLOAD_TYPE_AGENT",
    "?workloadType=",
    "?workloadtype=WORKLOAD_TYPE_ENGINE",
    "?workloadType=WORKLOAD_TYPE_ENGINE&workloadType=WORKLOAD_TYPE_ENGINE",
  ])("refuses %j with 400", async (query) => {
    const path = `${pathOf(node)}/workload-connect${query}`;
    await expect(stage.call({ token: owner.token, path }, z.unknown())).rejects.toThrow(": 400 ");
  });

  test("is allowed for owners, administrators and the node itself, and others cannot learn that the node exists", async () => {
    const admin = await addAdmin();
    const [member, stranger] = [await stage.addPerson(), await stage.addPerson()];
    await stage.join(projectId, member, "member");
    const other = await stage.addNode(owner, projectId);
    for (const token of [owner.token, admin.token, node.identityToken]) {
      expect((await answerOf(relayRequest(await stage.connect(token, node.id)))).text).toBe("engine");
    }
    await expect(stage.connect(member.token, node.id)).rejects.toThrow(": 403 ");
    for (const token of [stranger.token, other.identityToken]) {
      await expect(stage.connect(token, node.id)).rejects.toThrow(": 404 ");
    }
  });

  test("reports that there is nothing to reach: node not enrolled, or no engine", async () => {
    const body = { projectId, planId: "byo", name: "Later" };
    const created = z.object({ node: z.object({ id: z.string() }) });
    const call = { token: owner.token, method: "POST", path: "/v1/nodes" };
    const withEngine = { ...body, engineConfig: { preset: "fairlead-demo" } };
    const { node: waiting } = await stage.call({ ...call, body: withEngine }, created);
    await expect(stage.connect(owner.token, waiting.id)).rejects.toThrow(/: 409 .*node_not_enrolled/);
    const { node: bare } = await stage.call({ ...call, body }, created);
    await expect(stage.connect(owner.token, bare.id)).rejects.toThrow(/: 503 .*no_running_engine/);
  });

  test("is recorded in the audit log for people, but not for the node itself", async () => {
    const admin = await addAdmin();
    await stage.connect(admin.token, node.id);
    await stage.connect(node.identityToken, node.id);
    const page = z.object({
      auditEvents: z.array(z.looseObject({ action: z.string(), actor: z.looseObject({ id: z.string() }) })),
    });
    const { auditEvents } = await stage.call({ token: owner.token, path: `/v1/projects/${projectId}/audit` }, page);
    const asked = auditEvents.filter(({ action }) => action === "node.connect");
    expect(asked.map(({ actor }) => actor.id)).toEqual([admin.userId]);
  });
});

describe("a token", () => {
  test("opens its own node and no other, of the same project or another", async () => {
    const neighbour = await stage.addNode(owner, projectId);
    const elsewhere = await stage.addPerson();
    const theirs = await stage.addNode(elsewhere, await stage.addProject(elsewhere));
    const { authToken } = await stage.connect(owner.token, node.id);
    for (const { id } of [neighbour, theirs, { id: "nod_unknown" }, { id: `${node.id}%2f` }]) {
      const gatewayUrl = `${stage.url}/v1/nodes/${id}/gateway`;
      expect((await answerOf(relayRequest({ gatewayUrl, authToken }))).status).toBe(401);
    }
    expect([...neighbour.engine.requests, ...theirs.engine.requests, ...node.engine.requests]).toEqual([]);
  });

  test("stays valid when the signing key is rotated, and the node accepts a token of the new key", async () => {
    const before = await stage.connect(owner.token, node.id);
    expect((await answerOf(relayRequest(before))).text).toBe("engine");
    await stage.asOperator((admin) => admin.rotateSigningKey());
    const after = await stage.connect(owner.token, node.id);
    for (const way of [before, after]) expect((await answerOf(relayRequest(way))).text).toBe("engine");
  });

  test("is verified by the node from its disk, and a node without keys that cannot fetch them reports it", async () => {
    const file = join(node.stateDir, "platform-keys.json");
    const way = await stage.connect(owner.token, node.id);
    await answerOf(relayRequest(way));
    await rm(file);
    expect((await answerOf(relayRequest(way))).text).toBe("engine");
  });
});

describe("access that is revoked", () => {
  /** Whose end takes the way in away. */
  const ends: readonly (readonly [string, (admin: Person) => Promise<unknown>])[] = [
    [
      "the node is deleted",
      () => stage.call({ token: owner.token, method: "DELETE", path: pathOf(node) }, z.unknown()),
    ],
    ["the node enrolls again", () => stage.enroll(owner, node.id)],
    [
      "the member is removed",
      ({ userId }) =>
        stage.call(
          { token: owner.token, method: "DELETE", path: `/v1/projects/${projectId}/members/${userId}` },
          z.unknown(),
        ),
    ],
    [
      "the member's role is lowered",
      ({ userId }) =>
        stage.call(
          {
            token: owner.token,
            method: "PATCH",
            path: `/v1/projects/${projectId}/members/${userId}`,
            body: { role: "member" },
          },
          z.unknown(),
        ),
    ],
    ["their session is revoked", (admin) => stage.endSession(admin)],
    [
      "the project is being deleted",
      () =>
        stage.call(
          { token: owner.token, method: "DELETE", path: `/v1/projects/${projectId}?confirmName=Relay` },
          z.unknown(),
        ),
    ],
  ];

  test.each(ends)("ends after %s: new requests are rejected and open connections are closed", async (_name, end) => {
    const admin = await addAdmin();
    const way = await stage.connect(admin.token, node.id);
    const { streamCut, socketCut } = await openBoth(admin);
    await end(admin);
    expect(await streamCut).toBeInstanceOf(Error);
    expect(await socketCut).toBe(1006);
    await waitFor("the refusal", WAIT_MS, async () => (await answerOf(relayRequest(way))).status === 401);
  });

  test("does not affect other people's access to the node", async () => {
    const admin = await addAdmin();
    const kept = await stage.connect(owner.token, node.id);
    const { streamCut } = await openBoth(owner);
    await stage.endSession(admin);
    let cut = false;
    void streamCut.then(() => {
      cut = true;
    });
    node.engine.script = (_request, response) => response.end("engine");
    await waitFor("the other's refusal", WAIT_MS, async () => {
      const refused = await stage.connect(admin.token, node.id).catch((error: unknown) => String(error));
      return typeof refused === "string" && refused.includes(": 401 ");
    });
    expect((await answerOf(relayRequest(kept))).text).toBe("engine");
    expect(cut).toBe(false);
  });
});

test("a node without a tunnel returns 503 with a time to retry", async () => {
  const way = await stage.connect(owner.token, node.id);
  await node.tunnel.close();
  await waitFor("the loss", WAIT_MS, async () => (await answerOf(relayRequest(way))).status === 503);
  const answer = await answerOf(relayRequest(way));
  expect(answer.headers["retry-after"]).toBe("5");
  expect(JSON.parse(answer.text)).toMatchObject({ error: { code: "no_running_engine" } });
});

test("an engine that does not listen returns 503 in our words, although the daemon reports it", async () => {
  const way = await stage.connect(owner.token, node.id);
  await node.engine.stop();
  const answer = await answerOf(relayRequest(way));
  expect(answer.status).toBe(503);
  expect(JSON.parse(answer.text)).toMatchObject({ error: { code: "no_running_engine", source: "fairlead" } });
});
