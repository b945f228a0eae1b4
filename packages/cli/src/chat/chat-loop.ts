import type { ChatSession } from "@fairlead/protocol/chat";
import type { IdSource } from "@fairlead/protocol/values/ids";
import { CliError } from "../cli-error.ts";
import type { Prompt } from "../terminal/line-prompt.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { visible, visibleLines } from "../terminal/visible.ts";
import { advised } from "./advice.ts";
import type { ChatClient } from "./chat-client.ts";
import { sessionTable } from "./session-table.ts";
import { resumeCommand, runTurn } from "./turn.ts";

/** An interactive chat in a terminal. */

const PROMPT = "> ";
/** Messages shown when a session is resumed. */
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
  /** The argument in the help; "" for none. */
  readonly argument: string;
  readonly about: string;
  run(loop: ChatLoop, argument: string): Promise<"leave" | undefined>;
}

export class ChatLoop {
  readonly #deps: ChatLoopDeps;
  readonly #prompt: Prompt;
  #sessionId: string | null = null;
  #model: string | null;
  /** The list that `/resume 2` refers to. */
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
    terminal.note("Type /help for commands. Ctrl-C stops a response, Ctrl-D exits.");
    if (this.#sessionId !== null) await this.#recall(this.#sessionId);
    try {
      for (;;) {
        const typed = (await this.#prompt.read(PROMPT))?.trim() ?? null;
        if (typed === null) return;
        if (typed !== "" && (await this.#take(typed)) === "leave") return;
      }
    } finally {
      if (this.#sessionId !== null) terminal.note(`Continue this chat with \`${resumeCommand(this.#sessionId)}\`.`);
    }
  }

  async ask(text: string | null): Promise<undefined> {
    const { client, terminal, ids } = this.#deps;
    const turn = { sessionId: this.#sessionId, text, model: this.#model, idempotencyKey: ids.next("request") };
    const onSession = (id: string): void => void (this.#sessionId = id);
    if ((await runTurn({ client, terminal, onSession }, turn)) === "stopped")
      terminal.note("(stopped; the partial response is saved)");
    return undefined;
  }

  async retry(): Promise<undefined> {
    if (this.#sessionId === null) throw new CliError("There is no response to retry.");
    return this.ask(null);
  }

  async startNew(): Promise<undefined> {
    this.#sessionId = null;
    this.#deps.terminal.note("Your next message starts a new session.");
    return undefined;
  }

  async list(search: string): Promise<undefined> {
    const { client, terminal } = this.#deps;
    this.#listed = await client.list(search === "" ? undefined : search, { limit: LISTED });
    if (this.#listed.length === 0) terminal.note("No sessions.");
    else terminal.note(`${sessionTable(this.#listed, { numbered: true })}Continue one with /resume NUMBER.`);
    return undefined;
  }

  async resume(which: string): Promise<undefined> {
    const { client } = this.#deps;
    if (which === "") throw new CliError("Name a session: /resume NUMBER (from /sessions) or /resume ID.");
    const id = /^\d{1,3}$/.test(which) ? this.#listed[Number(which) - 1]?.id : which;
    if (id === undefined) throw new CliError(`There is no session number ${which}. Run /sessions first.`);
    this.#sessionId = (await client.get(id)).id;
    await this.#recall(this.#sessionId);
    return undefined;
  }

  async useModel(model: string): Promise<undefined> {
    this.#model = model === "" ? null : model;
    this.#deps.terminal.note(model === "" ? "Using the session's model." : `Using ${visible(model)}.`);
    return undefined;
  }

  async rename(title: string): Promise<undefined> {
    const session = this.#session();
    if (title === "") throw new CliError("Give a title: /title Plans for the garden.");
    const { title: given } = await this.#deps.client.rename(session, title);
    this.#deps.terminal.note(`The session's title is now "${visible(given)}".`);
    return undefined;
  }

  async stop(): Promise<undefined> {
    const ran = await this.#deps.client.stop(this.#session());
    this.#deps.terminal.note(
      ran ? "Stopped; the partial response is saved." : "No response is running in this session.",
    );
    return undefined;
  }

  async help(): Promise<undefined> {
    const rows = Object.entries(COMMANDS).map(([name, { argument, about }]) => [`${name} ${argument}`.trim(), about]);
    const width = Math.max(...rows.map(([left = ""]) => left.length));
    const lines = rows.map(([left = "", about]) => `  ${left.padEnd(width)}  ${about}`);
    const keys = "Pasted lines are one message. End a line with \\ to continue on the next one.";
    this.#deps.terminal.note([...lines, keys, "To start a message with a slash, type two."].join("\n"));
    return undefined;
  }

  /** Prints errors and continues the chat. */
  async #take(typed: string): Promise<"leave" | undefined> {
    try {
      const named = /^(\/[a-z]+)(?:\s+([\s\S]*))?$/.exec(typed);
      if (named === null) return await this.ask(typed.startsWith("//") ? typed.slice(1) : typed);
      const [, name = "", argument = ""] = named;
      const command = COMMANDS[name];
      if (command === undefined) throw new CliError(`Unknown command ${name}. Type /help for a list.`);
      return await command.run(this, argument.trim());
    } catch (error) {
      const told = advised(error);
      if (!(told instanceof CliError) || told.message === "") throw error;
      this.#deps.terminal.note(told.message);
      return undefined;
    }
  }

  #session(): string {
    if (this.#sessionId === null) throw new CliError("There is no session yet. It starts with your first message.");
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
  in_progress: " (response in progress; /stop ends it)",
};

const COMMANDS: Readonly<Record<string, Command>> = {
  "/new": { argument: "", about: "start a new session", run: (loop) => loop.startNew() },
  "/sessions": {
    argument: "[TEXT]",
    about: "list your sessions in this project, or those that contain the text",
    run: (loop, text) => loop.list(text),
  },
  "/resume": {
    argument: "NUMBER|ID",
    about: "continue another session",
    run: (loop, which) => loop.resume(which),
  },
  "/model": {
    argument: "[NAME]",
    about: "choose the model; without a name: the session's model",
    run: (loop, name) => loop.useModel(name),
  },
  "/title": { argument: "TEXT", about: "set the session's title", run: (loop, title) => loop.rename(title) },
  "/retry": { argument: "", about: "regenerate the last response", run: (loop) => loop.retry() },
  "/stop": {
    argument: "",
    about: "stop a response that is still running in this session, for example in another window",
    run: (loop) => loop.stop(),
  },
  "/help": { argument: "", about: "show this help", run: (loop) => loop.help() },
  "/exit": { argument: "", about: "exit (also Ctrl-D)", run: () => Promise.resolve("leave") },
};
