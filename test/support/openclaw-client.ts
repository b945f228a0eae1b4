import { randomUUID } from "node:crypto";
import type { WorkloadConnect } from "@fairlead/protocol/workload-connect";
import { WebSocket } from "ws";
import { z } from "zod";

const WAIT_MS = 60_000;

const frameSchema = z.looseObject({
  type: z.string(),
  id: z.string().optional(),
  event: z.string().optional(),
  ok: z.boolean().optional(),
  payload: z.looseObject({}).optional(),
  error: z.looseObject({ message: z.string() }).optional(),
});
const acceptedSchema = z.object({ runId: z.string() });
const endedSchema = z.object({
  status: z.string(),
  terminalReply: z.object({ text: z.string() }).optional(),
});

type Frame = z.infer<typeof frameSchema>;

/** Speaks the protocol of an OpenClaw gateway (version 4) as its operator, through the relay. */
export class OpenclawClient {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<string, (frame: Frame) => void>();

  private constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  /** @param token the gateway's own. @throws where the relay or the gateway does not let it in. */
  static async open({ gatewayUrl, authToken }: WorkloadConnect, token: string): Promise<OpenclawClient> {
    const headers = { authorization: `Bearer ${authToken}` };
    const socket = new WebSocket(gatewayUrl.replace("http", "ws"), { headers });
    const client = new OpenclawClient(socket);
    await new Promise<void>((resolve, reject) => {
      socket.on("error", reject);
      socket.on("close", (code, reason) => reject(new Error(`the gateway closed: ${code} ${String(reason)}`)));
      socket.on("message", (data: Buffer) => {
        const frame = frameSchema.parse(JSON.parse(data.toString()));
        if (frame.event === "connect.challenge") client.#introduce(token).then(resolve, reject);
        else if (frame.type === "res" && frame.id !== undefined) client.#waiting.get(frame.id)?.(frame);
      });
    }).catch((error: unknown) => {
      socket.terminate();
      throw error;
    });
    return client;
  }

  /** @returns what the agent says in the end. */
  async ask(message: string): Promise<string> {
    const turn = { message, idempotencyKey: randomUUID(), sessionKey: "agent:main:main", deliver: false };
    const { runId } = acceptedSchema.parse(await this.#call("agent", turn));
    const ended = endedSchema.parse(await this.#call("agent.wait", { runId, timeoutMs: WAIT_MS }));
    if (ended.terminalReply === undefined) throw new Error(`the agent said nothing: ${ended.status}`);
    return ended.terminalReply.text;
  }

  close(): void {
    this.#socket.terminate();
  }

  async #introduce(token: string): Promise<void> {
    await this.#call("connect", {
      minProtocol: 4,
      maxProtocol: 4,
      client: { id: "gateway-client", version: "1.0.0", platform: "linux", mode: "backend" },
      role: "operator",
      scopes: ["operator.read", "operator.write"],
      caps: [],
      auth: { token },
    });
  }

  async #call(method: string, params: object): Promise<unknown> {
    const id = randomUUID();
    const answered = new Promise<Frame>((resolve) => this.#waiting.set(id, resolve));
    this.#socket.send(JSON.stringify({ type: "req", id, method, params }));
    const { ok, payload, error } = await answered;
    if (ok !== true) throw new Error(`${method}: ${error?.message}`);
    return payload;
  }
}
