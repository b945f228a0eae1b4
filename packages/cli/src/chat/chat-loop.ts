import type { ChatSession } from "@fairlead/protocol/chat";
import type { IdSource } from "@fairlead/protocol/ids";
import { CliError } from "../cli-error.ts";
import type { Prompt } from "../line-prompt.ts";
import type { Terminal } from "../terminal.ts";
import { visible, visibleLines } from "../visible.ts";
import { advised } from "./advice.ts";
import type { ChatClient } from "./chat-client.ts";
import { sessionTable } from "./session-table.ts";
import { resumeCommand, runTurn } from "./turn.ts";

/** A conversation at a terminal, until its person leaves. */

const PROMPT = "> ";
/** How much of a session is shown when it is resumed. */
const RECALLED = 6;
const LISTED = 20;

export interface ChatLoopDeps {
  readonly client: ChatClient;
  readonly terminal: Terminal;
  readonly ids: IdSource;
}

export interface ChatStart {
  readonly session: ChatSession | null;
  readonly model: string | null;
}

interface Command {
  /** What stands behind its name; "" for nothing. */
  readonly argument: string;
  readonly about: string;
  run(loop: ChatLoop, argument: string): Promise<"leave" | undefined>;
}

export class ChatLoop {
  readonly #deps: ChatLoopDeps;
  readonly #prompt: Prompt;
  #sessionId: string | null = null;
  #model: string | null;
  /** What `/resume 2` means. */
  #listed: readonly ChatSession[] = [];

  constructor(deps: ChatLoopDeps, { session, model }: ChatStart) {
    this.#deps = deps;
    this.#sessionId = session?.id ?? null;
    this.#model = model;
    this.#prompt = deps.terminal.openPrompt(Object.keys(COMMANDS));
  }

  /** @throws Interrupted when Ctrl-C ended it. */
  async run(): Promise<void> {
    const { terminal } = this.#deps;
    terminal.note("/help shows what you can do here. Ctrl-C stops an answer, Ctrl-D leaves.");
    if (this.#sessionId !== null) await this.#recall(this.#sessionId);
    try {
      for (;;) {
        const typed = (await this.#prompt.read(PROMPT))?.trim() ?? null;
        if (typed === null) return;
        if (typed !== "" && (await this.#take(typed)) === "leave") return;
      }
    } finally {
      if (this.#sessionId !== null) terminal.note(`\`${resumeCommand(this.#sessionId)}\` goes on with this chat.`);
    }
  }

  async ask(text: string | null): Promise<undefined> {
    const { client, terminal, ids } = this.#deps;
    const turn = { sessionId: this.#sessionId, text, model: this.#model, idempotencyKey: ids.next("request") };
    const onSession = (id: string): void => void (this.#sessionId = id);
    if ((await runTurn({ client, terminal, onSession }, turn)) === "stopped")
      terminal.note("(stopped; what had come is kept)");
    return undefined;
  }

  async retry(): Promise<undefined> {
    if (this.#sessionId === null) throw new CliError("There is no answer yet that could be given anew.");
    return this.ask(null);
  }

  async startNew(): Promise<undefined> {
    this.#sessionId = null;
    this.#deps.terminal.note("A new session begins with your next message.");
    return undefined;
  }

  async list(search: string): Promise<undefined> {
    const { client, terminal } = this.#deps;
    this.#listed = await client.list(search === "" ? undefined : search, { limit: LISTED });
    if (this.#listed.length === 0) terminal.note("No sessions.");
    else terminal.note(`${sessionTable(this.#listed, { numbered: true })}/resume NUMBER goes on with one.`);
    return undefined;
  }

  async resume(which: string): Promise<undefined> {
    const { client } = this.#deps;
    if (which === "") throw new CliError("Say which: /resume NUMBER of /sessions, or /resume ID.");
    const id = /^\d{1,3}$/.test(which) ? this.#listed[Number(which) - 1]?.id : which;
    if (id === undefined) throw new CliError(`/sessions has shown no number ${which}.`);
    this.#sessionId = (await client.get(id)).id;
    await this.#recall(this.#sessionId);
    return undefined;
  }

  async useModel(model: string): Promise<undefined> {
    this.#model = model === "" ? null : model;
    this.#deps.terminal.note(
      model === "" ? "Answers come from the session's model." : `Answers come from ${visible(model)}.`,
    );
    return undefined;
  }

  async rename(title: string): Promise<undefined> {
    const session = this.#session();
    if (title === "") throw new CliError("Say how: /title Plans for the garden.");
    const { title: given } = await this.#deps.client.rename(session, title);
    this.#deps.terminal.note(`This session is called "${visible(given)}".`);
    return undefined;
  }

  async stop(): Promise<undefined> {
    const ran = await this.#deps.client.stop(this.#session());
    this.#deps.terminal.note(ran ? "Stopped; what had come is kept." : "Nothing runs in this session.");
    return undefined;
  }

  async help(): Promise<undefined> {
    const rows = Object.entries(COMMANDS).map(([name, { argument, about }]) => [`${name} ${argument}`.trim(), about]);
    const width = Math.max(...rows.map(([left = ""]) => left.length));
    const lines = rows.map(([left = "", about]) => `  ${left.padEnd(width)}  ${about}`);
    const keys = "Lines that are pasted together are one message; \\ at the end of a line goes on in the next.";
    this.#deps.terminal.note([...lines, keys, "Two slashes begin a message with one."].join("\n"));
    return undefined;
  }

  /** What fails is told, and the chat goes on. */
  async #take(typed: string): Promise<"leave" | undefined> {
    try {
      const named = /^(\/[a-z]+)(?:\s+([\s\S]*))?$/.exec(typed);
      if (named === null) return await this.ask(typed.startsWith("//") ? typed.slice(1) : typed);
      const [, name = "", argument = ""] = named;
      const command = COMMANDS[name];
      if (command === undefined) throw new CliError(`There is no ${name}. /help shows what there is.`);
      return await command.run(this, argument.trim());
    } catch (error) {
      const told = advised(error);
      if (!(told instanceof CliError) || told.message === "") throw error;
      this.#deps.terminal.note(told.message);
      return undefined;
    }
  }

  #session(): string {
    if (this.#sessionId === null) throw new CliError("There is no session yet: it begins with your first message.");
    return this.#sessionId;
  }

  async #recall(sessionId: string): Promise<void> {
    const { client, terminal } = this.#deps;
    for (const { role, content, status } of await client.lastMessages(sessionId, RECALLED)) {
      const cut = NOT_WHOLE[status] ?? "";
      terminal.note(`${role === "user" ? PROMPT : ""}${visibleLines(content)}${cut}`);
    }
  }
}

const NOT_WHOLE: Readonly<Record<string, string>> = {
  incomplete: " (incomplete)",
  in_progress: " (still being answered: /stop ends it)",
};

const COMMANDS: Readonly<Record<string, Command>> = {
  "/new": { argument: "", about: "begin a new session", run: (loop) => loop.startNew() },
  "/sessions": {
    argument: "[TEXT]",
    about: "list your sessions in this project, or those that hold the text",
    run: (loop, text) => loop.list(text),
  },
  "/resume": {
    argument: "NUMBER|ID",
    about: "go on with another session",
    run: (loop, which) => loop.resume(which),
  },
  "/model": {
    argument: "[NAME]",
    about: "choose who answers; without a name: the session's own model",
    run: (loop, name) => loop.useModel(name),
  },
  "/title": { argument: "TEXT", about: "give the session a title", run: (loop, title) => loop.rename(title) },
  "/retry": { argument: "", about: "have the last question answered anew", run: (loop) => loop.retry() },
  "/stop": {
    argument: "",
    about: "end an answer that still runs in this session, in another window or after a lost connection",
    run: (loop) => loop.stop(),
  },
  "/help": { argument: "", about: "show this", run: (loop) => loop.help() },
  "/exit": { argument: "", about: "leave; so does Ctrl-D", run: () => Promise.resolve("leave") },
};
