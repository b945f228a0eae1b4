import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { openLocalAdmin } from "../../packages/control-plane/src/installation/admin/local-admin.ts";
import { type Config, loadConfig } from "../../packages/control-plane/src/installation/config/config.ts";
import { type RunningServer, startServer } from "../../packages/control-plane/src/server.ts";
import { ChatCaller } from "./chat-caller.ts";
import { fillSession, type StoredTurns } from "./fill-session.ts";
import { ScriptedDialects } from "./scripted-dialects.ts";
import { type EngineScript, ScriptedEngine } from "./scripted-engine.ts";

/** By what is spoken to them: the chat routes have to convert for one, whichever dialect they are called in. */
export const CHAT_MODELS = { chat: "chatty/model", responses: "responsive/model" } as const;
export const CHAT_MODEL = CHAT_MODELS.responses;
/** Of a context that is soon full. */
export const SMALL_MODEL = "chatty/small";

const PRICES = { input: 1_000_000_000, output: 2_000_000_000 };

/** `providers.platform` for a scripted engine of both dialects. */
export function chatProviders(port: number): readonly object[] {
  const baseUrl = `http://127.0.0.1:${port}/v1`;
  const models = [
    { name: "model", contextTokens: 1_000_000, maxOutputTokens: 1000, prices: PRICES },
    { name: "small", contextTokens: 1000, maxOutputTokens: 100, prices: PRICES },
  ];
  return [
    { name: "chatty", baseUrl, protocols: ["chat"], models },
    { name: "responsive", baseUrl, protocols: ["responses"], models },
  ];
}

/** A control plane on a store of its own, with a scripted engine of both dialects as its providers; all in this process. */
export class ChatStage {
  readonly upstream = new ScriptedDialects();
  readonly #engine = new ScriptedEngine();
  readonly #dir = mkdtempSync(join(tmpdir(), "fairlead-chat-"));
  #config: Config | null = null;
  #server: RunningServer | null = null;

  /**
   * @param settings as variables, on top of what it needs. @param enginePort of a real engine on this machine, in place of the
   * scripted one.
   */
  static async start(settings: Readonly<Record<string, string>> = {}, enginePort?: number): Promise<ChatStage> {
    const stage = new ChatStage();
    stage.script = stage.upstream.script;
    const port = enginePort ?? (await stage.#engine.start());
    stage.#config = loadConfig({
      env: {
        FAIRLEAD_DATA_DIR: stage.#dir,
        FAIRLEAD_SERVER_PLATFORM_PORT: "0",
        FAIRLEAD_SERVER_INFERENCE_PORT: "0",
        FAIRLEAD_SERVER_SHUTDOWN_SECONDS: "0",
        FAIRLEAD_LOG_LEVEL: "silent",
        FAIRLEAD_PROVIDERS_PLATFORM: JSON.stringify(chatProviders(port)),
        FAIRLEAD_INFERENCE_DEFAULT_MODEL: CHAT_MODEL,
        FAIRLEAD_INFERENCE_MAX_ATTEMPTS: "1",
        ...settings,
      },
    });
    stage.#server = await startServer(stage.#config);
    return stage;
  }

  /** What its engine does with a call. */
  set script(script: EngineScript) {
    this.#engine.script = script;
  }

  get url(): string {
    return this.#running.platformUrl;
  }

  /** A person with a project of their own. */
  async newPerson(name: string): Promise<ChatCaller> {
    const token = await this.#tokenOf(name, false);
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const body = JSON.stringify({ name: `${name}'s` });
    const made = await fetch(`${this.url}/v1/projects`, { method: "POST", headers, body });
    return new ChatCaller({ url: this.url, token, projectId: createdProject.parse(await made.json()).project.id });
  }

  /** Money for a project, from a platform administrator. */
  async addCredits(projectId: string, amountNanoDollars: number): Promise<void> {
    const headers = {
      authorization: `Bearer ${await this.#tokenOf("administrator", true)}`,
      "content-type": "application/json",
    };
    const body = JSON.stringify({ amountNanoDollars });
    const answer = await fetch(`${this.url}/v1/projects/${projectId}/credits`, { method: "POST", headers, body });
    if (!answer.ok) throw new Error(`no credits: ${answer.status} ${await answer.text()}`);
  }

  /** Turns of a session that is there, without asking any model. */
  async fill(turns: StoredTurns): Promise<void> {
    await fillSession(join(this.#dir, "fairlead.db"), turns);
  }

  async stop(): Promise<void> {
    await this.#server?.close();
    await this.#engine.stop();
    rmSync(this.#dir, { recursive: true, force: true });
  }

  async #tokenOf(name: string, platformAdmin: boolean): Promise<string> {
    if (this.#config === null) throw new Error("the stage has not started");
    const admin = await openLocalAdmin(this.#config);
    const email = `${name}@example.org`;
    await admin.createUser({ email, name, platformAdmin });
    const { token } = await admin.createToken({ email });
    await admin.close();
    return token;
  }

  get #running(): RunningServer {
    if (this.#server === null) throw new Error("the stage has not started");
    return this.#server;
  }
}

const createdProject = z.object({ project: z.object({ id: z.string() }) });
