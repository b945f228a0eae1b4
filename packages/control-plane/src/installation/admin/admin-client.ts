import { request } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { DomainError, ERROR_CODES, type ErrorCode } from "@fairlead/protocol/errors";
import type { Clock } from "@fairlead/protocol/values/clock";
import { parseJson } from "@fairlead/protocol/values/parse-json";
import { z } from "zod";
import { adminSocketPath } from "./admin-socket.ts";

/** Client of a running server's admin socket. */
export type AdminCall = <T>(path: string, body: unknown, answer: z.ZodType<T>) => Promise<T>;

/** A starting server opens its socket last. */
const START_UP_MS = 10_000;
const RETRY_MS = 50;

const errorCodes = Object.keys(ERROR_CODES) as ErrorCode[];
const errorSchema = z.object({
  error: z.object({ message: z.string(), code: z.enum(errorCodes), param: z.string().nullable() }),
});

export function adminClient(dataDir: string, clock: Clock): AdminCall {
  const socketPath = adminSocketPath(dataDir);
  return async (path, body, answer) => {
    const deadline = clock.monotonic() + START_UP_MS;
    for (;;) {
      try {
        return answer.parse(refuseError(await post(socketPath, path, JSON.stringify(body))));
      } catch (error) {
        if (!isNotThereYet(error)) throw error;
        if (clock.monotonic() >= deadline) throw silent(socketPath, error);
        await delay(RETRY_MS);
      }
    }
  };
}

function post(socketPath: string, path: string, body: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    const call = request({ socketPath, path, method: "POST", headers, agent: false }, (response) => {
      response.toArray().then((pieces: Buffer[]) => resolve(parseJson(Buffer.concat(pieces))), reject);
    });
    call.on("error", reject);
    call.end(body);
  });
}

/** Turns an error response back into the error that the server threw. */
function refuseError(answer: unknown): unknown {
  const failed = errorSchema.safeParse(answer);
  if (!failed.success) return answer;
  const { code, message, param } = failed.data.error;
  throw new DomainError(code, message, { param: param ?? undefined });
}

function isNotThereYet(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ECONNREFUSED");
}

function silent(socketPath: string, cause: unknown): DomainError {
  const message = `A server is using this data folder, but does not respond at ${socketPath}. It may be stopping, or run as another user.`;
  return new DomainError("unavailable", message, { cause });
}
