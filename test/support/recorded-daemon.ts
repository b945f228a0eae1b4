import { createHash, generateKeyPairSync, type KeyObject, randomUUID, sign } from "node:crypto";
import { sealingPublicKeySchema, signingPublicKeySchema } from "@fairlead/protocol/enrollment";
import { z } from "zod";
import { mapStrings, type RecordedStep, type Recording, signedSchema } from "./recording.ts";
import { waitFor } from "./wait-for.ts";

const ANSWER_MS = 10_000;
const PLACEHOLDER = /\{(\w+)\}/g;
const WHOLE_PLACEHOLDER = /^\{(\w+)\}$/;

const frameSchema = z.looseObject({
  id: z.union([z.number(), z.string()]).nullish(),
  result: z.looseObject({ type: z.string() }).optional(),
});

export interface Stage {
  readonly platformUrl: string;
  readonly nodeId: string;
  readonly bootstrapToken: string;
  /** Changes every body and every link message's input before it is sent. */
  readonly alter?: (said: unknown) => unknown;
  /** What people do meanwhile, by its name in the recording. */
  readonly scenes?: Readonly<Record<string, () => Promise<unknown>>>;
}

/** Plays an older daemon's part against a server of today, and holds the answers against what that daemon was given then. */
export class RecordedDaemon {
  readonly #recording: Recording;
  readonly #stage: Stage;
  readonly #key: KeyObject;
  readonly #values: Map<string, string>;
  readonly #received: unknown[] = [];
  #socket: WebSocket | null = null;

  constructor(recording: Recording, stage: Stage) {
    const signing = generateKeyPairSync("ed25519");
    const sealing = generateKeyPairSync("x25519");
    this.#recording = recording;
    this.#stage = stage;
    this.#key = signing.privateKey;
    this.#values = new Map([
      ["nodeId", stage.nodeId],
      ["bootstrapToken", stage.bootstrapToken],
      ["bootstrapTokenSha256", createHash("sha256").update(stage.bootstrapToken).digest("hex")],
      ["signingKey", signingPublicKeySchema.parse(signing.publicKey.export({ format: "jwk" })).x],
      ["sealingKey", sealingPublicKeySchema.parse(sealing.publicKey.export({ format: "jwk" })).x],
    ]);
  }

  /** @throws Error that names the step at which the server no longer keeps to what that daemon relies on. */
  async play(): Promise<void> {
    for (const [index, step] of this.#recording.steps.entries()) {
      await this.#play(step).catch((cause: unknown) => {
        throw new Error(`step ${index} of the recording: ${JSON.stringify(step)}`, { cause });
      });
    }
  }

  close(): void {
    this.#socket?.close();
  }

  async #play(step: RecordedStep): Promise<void> {
    if ("scene" in step) await this.#stage.scenes?.[step.scene]?.();
    else if ("http" in step) await this.#call(step.http);
    else if ("open" in step) await this.#open(step.open);
    else if ("daemon" in step) this.#say(step.daemon);
    else await this.#hear(step.server);
  }

  async #call({ method, path, bearer, body, answer }: Extract<RecordedStep, { http: unknown }>["http"]): Promise<void> {
    const response = await fetch(`${this.#stage.platformUrl}${String(this.#fill(path))}`, {
      method,
      headers: {
        "content-type": "application/json",
        ...(bearer === null ? {} : { authorization: `Bearer ${String(this.#fill(bearer))}` }),
      },
      ...(body === null ? {} : { body: JSON.stringify(this.#alter(this.#fill(body))) }),
    });
    const actual: unknown = await response.json();
    if (response.status !== answer.status) throw new Error(`answered ${response.status} ${JSON.stringify(actual)}`);
    this.#compare(answer.body, actual);
  }

  async #open({ path, bearer }: { path: string; bearer: string }): Promise<void> {
    this.#socket?.close();
    this.#received.length = 0;
    const url = new URL(String(this.#fill(path)), this.#stage.platformUrl.replace(/^http/, "ws"));
    const headers = { authorization: `Bearer ${String(this.#fill(bearer))}` };
    const socket = new WebSocket(url, { headers } as never);
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => {
      const text = String(data);
      if (text.startsWith("{")) this.#received.push(JSON.parse(text));
    });
    await new Promise<void>((resolve, reject) => {
      socket.addEventListener("open", () => resolve());
      socket.addEventListener("close", ({ code, reason }) => reject(new Error(`closed with ${code} ${reason}`)));
    });
  }

  #say(frame: unknown): void {
    const filled = z.looseObject({ params: z.looseObject({ input: z.unknown() }).optional() }).parse(this.#fill(frame));
    const params = filled.params && { ...filled.params, input: this.#alter(filled.params.input) };
    this.#socket?.send(JSON.stringify(params ? { ...filled, params } : filled));
  }

  /** Waits for a frame that answers the same call in the same way. */
  async #hear(recorded: unknown): Promise<void> {
    const wanted = frameSchema.parse(recorded);
    const actual = await waitFor("the server's frame", ANSWER_MS, async () => {
      const found = this.#received.findIndex((frame) => {
        const { id, result } = frameSchema.parse(frame);
        return id === wanted.id && result?.type === wanted.result?.type;
      });
      return found >= 0 && this.#received.splice(found, 1);
    }).catch((cause: unknown) => {
      throw new Error(`instead came ${JSON.stringify(this.#received)}`, { cause });
    });
    this.#compare(recorded, actual[0]);
  }

  /** What was there then must be there now and of the same kind; more may have come. Placeholders take their value from here. */
  #compare(recorded: unknown, actual: unknown, path = "$"): void {
    const placeholder = typeof recorded === "string" ? WHOLE_PLACEHOLDER.exec(recorded)?.[1] : undefined;
    if (placeholder !== undefined && typeof actual === "string") this.#values.set(placeholder, actual);
    if (recorded === null) return;
    if (kindOf(recorded) !== kindOf(actual)) throw new Error(`${path} was ${kindOf(recorded)}, is ${kindOf(actual)}`);
    if (Array.isArray(recorded) && Array.isArray(actual)) {
      for (const [index, item] of recorded.entries()) this.#compare(item, actual[index], `${path}[${index}]`);
    } else if (typeof recorded === "object") {
      const now = new Map(Object.entries(Object(actual)));
      for (const [name, item] of Object.entries(recorded)) this.#compare(item, now.get(name), `${path}.${name}`);
    }
  }

  /** Puts values in the place of placeholders, and signs what is to be signed. */
  #fill(said: unknown): unknown {
    const signed = signedSchema.safeParse(said);
    if (signed.success) return this.#sign(signed.data.$sign);
    if (Array.isArray(said)) return said.map((item) => this.#fill(item));
    if (typeof said === "object" && said !== null) {
      return Object.fromEntries(Object.entries(said).map(([name, item]) => [name, this.#fill(item)]));
    }
    return mapStrings(said, (text) => text.replaceAll(PLACEHOLDER, (_, name: string) => this.#valueOf(name)));
  }

  #valueOf(name: string): string {
    if (name === "unique") return randomUUID();
    const value = this.#values.get(name);
    if (value === undefined) throw new Error(`nothing has told the value of {${name}}`);
    return value;
  }

  #sign({ claims, secondsFromNow }: z.infer<typeof signedSchema>["$sign"]): string {
    const now = Math.floor(Date.now() / 1000);
    const times = Object.entries(secondsFromNow).map(([name, seconds]) => [name, now + seconds]);
    const parts = [{ alg: "EdDSA" }, { ...Object(this.#fill(claims)), ...Object.fromEntries(times) }];
    const text = parts.map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
    return `${text}.${sign(null, Buffer.from(text), this.#key).toString("base64url")}`;
  }

  #alter(said: unknown): unknown {
    return this.#stage.alter ? this.#stage.alter(said) : said;
  }
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}
