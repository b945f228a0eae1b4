import { once } from "node:events";
import { WebSocket } from "ws";
import { z } from "zod";

const WAIT_MS = 10_000;
const targets = z.array(z.object({ webSocketDebuggerUrl: z.string() })).min(1);

/** Has a process that runs with `--inspect` collect all its garbage: what is left is held. */
export async function collectGarbage(inspectorPort: number): Promise<void> {
  const signal = AbortSignal.timeout(WAIT_MS);
  const response = await fetch(`http://127.0.0.1:${inspectorPort}/json/list`, { signal });
  const [target] = targets.parse(await response.json());
  const socket = new WebSocket(target?.webSocketDebuggerUrl ?? "", { perMessageDeflate: false });
  try {
    await once(socket, "open", { signal });
    socket.send(JSON.stringify({ id: 1, method: "HeapProfiler.collectGarbage" }));
    await once(socket, "message", { signal });
  } finally {
    socket.terminate();
  }
}
