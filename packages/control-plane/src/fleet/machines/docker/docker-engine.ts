import { request } from "node:http";
import { buffer } from "node:stream/consumers";
import { parseJson } from "@fairlead/protocol/values/parse-json";
import { z } from "zod";

/** Docker's response, or none. */
export class DockerEngineError extends Error {
  override readonly name = "DockerEngineError";
  /** Null if Docker did not respond. */
  readonly status: number | null;

  constructor(status: number | null, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

export interface EngineCall {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Including the query. */
  readonly path: string;
  /** JSON or an archive. */
  readonly body?: object | Buffer;
}

/** The API version of Debian 12's engine. Later engines support it until they raise their minimum version. */
const VERSION = 41;
/** Timeout of a response, including commands inside a machine. */
const TIMEOUT_MS = 60_000;

const versionAnswer = z.object({ MinAPIVersion: z.string().regex(/^1\.\d{1,4}$/) });

const complaint = z.object({ message: z.string() });

/** The Docker engine behind a socket of this machine. */
export class DockerEngine {
  readonly #socketPath: string;
  #version: Promise<string> | null = null;

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  /** @throws DockerEngineError with Docker's message; ZodError for an invalid response */
  async json<T>(call: EngineCall, schema: z.ZodType<T>): Promise<T> {
    const body = await this.send(call);
    return schema.parse(parseJson(body));
  }

  /** @returns the response body. @throws DockerEngineError */
  async send(call: EngineCall): Promise<Buffer> {
    const version = await this.#usedVersion();
    return this.#answered({ ...call, path: `${version}${call.path}` });
  }

  /** Requested once; again after a failure. */
  #usedVersion(): Promise<string> {
    this.#version ??= this.#askVersion().catch((error: unknown) => {
      this.#version = null;
      throw error;
    });
    return this.#version;
  }

  async #askVersion(): Promise<string> {
    const body = await this.#answered({ method: "GET", path: "/version" });
    const { MinAPIVersion: minimum } = versionAnswer.parse(parseJson(body));
    return `/v1.${Math.max(VERSION, Number(minimum.slice(2)))}`;
  }

  async #answered(call: EngineCall): Promise<Buffer> {
    const { status, body } = await this.#exchange(call).catch((error: unknown) => {
      const words = error instanceof Error ? error.message : String(error);
      throw new DockerEngineError(null, `Docker does not respond at ${this.#socketPath}: ${words}`, { cause: error });
    });
    // 304: already in that state.
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
          path,
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
    return complaint.parse(parseJson(text)).message;
  } catch {
    return text;
  }
}
