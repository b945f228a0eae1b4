import { type AddressInfo, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Started } from "../processes.ts";

const ANSWER_MS = 30_000;
const POLL_MS = 50;

/** For programs that cannot take any free port by themselves. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Calls it until it answers. @throws with its last refusal when that takes too long, or when one of its programs has ended. */
export async function untilAnswers(
  at: { readonly port: number; readonly key: string; readonly model: string },
  ...programs: readonly Started[]
): Promise<void> {
  let last = new Error("no answer");
  for (let waited = 0; waited < ANSWER_MS; waited += POLL_MS) {
    for (const program of programs) program.mustRun();
    try {
      const answer = await fetch(`http://127.0.0.1:${at.port}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${at.key}`, "content-type": "application/json", connection: "close" },
        body: JSON.stringify({ model: at.model, messages: [{ role: "user", content: "Hello" }] }),
        signal: AbortSignal.timeout(ANSWER_MS),
      });
      const body = await answer.text();
      if (answer.status === 200) return;
      last = new Error(`${answer.status} ${body}`);
    } catch (error) {
      if (error instanceof Error) last = error;
    }
    await sleep(POLL_MS);
  }
  const words = programs.map((program) => program.lastWords()).join("\n");
  throw new Error(`a target does not answer: ${last.message}\n${words}`);
}
