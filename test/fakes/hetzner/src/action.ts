export interface ActionError {
  readonly code: string;
  readonly message: string;
}

/** Work of the provider that an answer only announces. */
export class Action {
  readonly id: number;
  readonly command: string;
  readonly serverId: number;
  readonly #started: string;
  #finished: string | null = null;
  #error: ActionError | null = null;

  constructor(id: number, { command, serverId, at }: { command: string; serverId: number; at: string }) {
    this.id = id;
    this.command = command;
    this.serverId = serverId;
    this.#started = at;
  }

  get running(): boolean {
    return this.#finished === null;
  }

  end(at: string, error: ActionError | null = null): void {
    this.#finished ??= at;
    this.#error ??= error;
  }

  toJSON(): object {
    const { id, command, serverId } = this;
    return {
      id,
      command,
      status: this.running ? "running" : this.#error === null ? "success" : "error",
      progress: this.running ? 0 : 100,
      started: this.#started,
      finished: this.#finished,
      resources: [{ id: serverId, type: "server" }],
      error: this.#error,
    };
  }
}
