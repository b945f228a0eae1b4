import { request } from "node:http";
import { LINK_PATH, TUNNEL_PATH, TUNNEL_UPGRADE } from "@fairlead/protocol/daemon-link";
import { WebSocket } from "ws";
import { z } from "zod";

/** What daemons open and call, tried as anybody. */
export interface DaemonAttempt {
  readonly platformUrl: string;
  /** Whose link or tunnel. */
  readonly nodeId: string;
  readonly headers: Readonly<Record<string, string>>;
}

interface Procedure {
  readonly method: "mutation" | "query" | "subscription";
  readonly input: unknown;
}

const HOST = {
  operatingSystem: "Debian",
  kernel: "6.1",
  architecture: "x64",
  hostName: "box",
  cpus: 1,
  memoryMb: 1,
  diskFreeMb: 1,
  dockerVersion: "20.10",
};

/** Messages that the link takes. */
const PROCEDURES: Readonly<Record<string, Procedure>> = {
  hello: {
    method: "mutation",
    input: { protocolVersions: [1], daemonVersion: "0.1.0", bootId: "boot", host: HOST },
  },
  heartbeat: { method: "mutation", input: { epoch: "epo", generation: 1 } },
  observe: { method: "mutation", input: { epoch: "epo", generation: 1, workloadReports: [] } },
  goodbye: { method: "mutation", input: undefined },
  events: { method: "mutation", input: [] },
  secret: { method: "query", input: { name: "NONE" } },
  workerToken: { method: "query", input: { workloadId: "agt_none" } },
  desiredState: { method: "subscription", input: {} },
};

const answerSchema = z.looseObject({
  id: z.number().optional(),
  result: z.unknown().optional(),
  error: z.object({ data: z.object({ code: z.string() }) }).optional(),
});

/** @param route `UPGRADE /v1/nodes/{id}/tunnel` or `LINK hello`. @returns what came of it, for the matrix. */
export async function tryAsDaemon(route: string, attempt: DaemonAttempt): Promise<string> {
  const [kind, name = ""] = route.split(" ");
  if (kind === "LINK") return callOverLink(name, attempt);
  return name.endsWith("/tunnel") ? openTunnel(attempt) : openLink(attempt, (socket) => socket.close());
}

function openTunnel({ platformUrl, nodeId, headers }: DaemonAttempt): Promise<string> {
  const upgrade = { ...headers, connection: "upgrade", upgrade: TUNNEL_UPGRADE };
  return new Promise((resolve, reject) => {
    const sent = request(`${platformUrl}${TUNNEL_PATH(nodeId)}`, { headers: upgrade, agent: false });
    sent.on("upgrade", (_response, socket) => {
      socket.destroy();
      resolve("yes");
    });
    sent.on("response", (response) => {
      response.resume();
      resolve(String(response.statusCode));
    });
    sent.on("error", reject);
    sent.end();
  });
}

/** @param opened is handed the socket, and has it to close. */
function openLink(
  { platformUrl, nodeId, headers }: DaemonAttempt,
  opened: (socket: WebSocket) => void | Promise<void>,
): Promise<string> {
  const socket = new WebSocket(`${platformUrl.replace("http", "ws")}${LINK_PATH(nodeId)}`, { headers });
  return new Promise((resolve, reject) => {
    socket.on("open", () => {
      Promise.resolve(opened(socket)).then(() => resolve("yes"), reject);
    });
    socket.on("unexpected-response", (_request, response) => {
      response.resume();
      resolve(String(response.statusCode));
    });
    socket.on("error", reject);
  });
}

async function callOverLink(name: string, attempt: DaemonAttempt): Promise<string> {
  const procedure = PROCEDURES[name];
  if (!procedure) return `no message for the procedure ${name} is known here`;
  let refused: string | null = null;
  const outcome = await openLink(attempt, async (socket) => {
    const answered = new Promise<z.infer<typeof answerSchema>>((resolve) => {
      socket.on("message", (data: Buffer) => {
        const text = data.toString();
        // Keep-alives are bare words.
        if (text.startsWith("{")) resolve(answerSchema.parse(JSON.parse(text)));
      });
    });
    const params = { path: name, input: procedure.input };
    socket.send(JSON.stringify({ id: 1, method: procedure.method, params }));
    refused = (await answered).error?.data.code ?? null;
    socket.close();
  });
  return refused ?? outcome;
}
