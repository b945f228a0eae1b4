import { request } from "node:http";
import { buffer } from "node:stream/consumers";
import { z } from "zod";

/** What came back from Docker: a status and its body, or no answer at all. */
export class DockerEngineError extends Error {
  override readonly name = "DockerEngineError";
  /** Null where Docker did not answer. */
  readonly status: number | null;

  constructor(status: number | null, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

export interface EngineCall {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** With its query. */
  readonly path: string;
  /** JSON, or an archive. */
  readonly body?: object | Buffer;
}

/** The version of the API that Debian 12's engine speaks; later ones speak it too. */
const VERSION = "/v1.41";
/** Time for one answer; a command inside a machine may take most of it. */
const TIMEOUT_MS = 60_000;

const complaint = z.object({ message: z.string() });

/** The Docker engine behind a socket of this machine. */
export class DockerEngine {
  readonly #socketPath: string;

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  /** @throws DockerEngineError with Docker's own words; ZodError where the answer is none of Docker's */
  async json<T>(call: EngineCall, schema: z.ZodType<T>): Promise<T> {
    const body = await this.send(call);
    return schema.parse(JSON.parse(body.toString("utf8")));
  }

  /** @returns the answer's body. @throws DockerEngineError */
  async send(call: EngineCall): Promise<Buffer> {
    const { status, body } = await this.#exchange(call).catch((error: unknown) => {
      const words = error instanceof Error ? error.message : String(error);
      throw new DockerEngineError(null, `Docker does not answer at ${this.#socketPath}: ${words}`, { cause: error });
    });
    // 304: it is so already.
    if (status < 300 || status === 304) return body;
    throw new DockerEngineError(status, wordsOf(body));
  }

  #exchange({ method, path, body }: EngineCall): Promise<{ readonly status: number; readonly body: Buffer }> {
    const isArchive = Buffer.isBuffer(body);
    const bytes = body === undefined || isArchive ? body : Buffer.from(JSON.stringify(body));
    const headers =
      bytes === undefined
        ? {}
        : { "content-type": isArchive ? "application/x-tar" : "application/json", "content-length": bytes.length };
    return new Promise((resolve, reject) => {
      const call = request(
        {
          socketPath: this.#socketPath,
          path: `${VERSION}${path}`,
          method,
          headers,
          signal: AbortSignal.timeout(TIMEOUT_MS),
        },
        (response) => {
          buffer(response).then((answer) => resolve({ status: response.statusCode ?? 0, body: answer }), reject);
        },
      );
      call.once("error", reject).end(bytes);
    });
  }
}

function wordsOf(body: Buffer): string {
  const text = body.toString("utf8").trim();
  try {
    return complaint.parse(JSON.parse(text)).message;
  } catch {
    return text;
  }
}
