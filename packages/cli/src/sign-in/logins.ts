import type { Clock } from "@fairlead/protocol/values/clock";
import { CliError, Interrupted } from "../cli-error.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { type Login, platformOf, withoutPlatform, withPlatform } from "./credentials.ts";
import type { CredentialsFile } from "./credentials-file.ts";
import type { OAuthServer, Tokens } from "./oauth-client.ts";
import type { SessionToken } from "./session-token.ts";

/** Tokens are renewed this long before they expire. */
const RENEW_BEFORE_MS = 60_000;

export interface LoginsDeps {
  readonly file: CredentialsFile;
  readonly clock: Clock;
  readonly terminal: Terminal;
}

/** The stored logins and their tokens. */
export class Logins {
  readonly #deps: LoginsDeps;

  constructor(deps: LoginsDeps) {
    this.#deps = deps;
  }

  /** The platform of the last login. */
  defaultUrl(): string | null {
    return this.#deps.file.read().defaultUrl;
  }

  /** The default project. */
  projectId(baseUrl: string): string | null {
    return platformOf(this.#deps.file.read(), baseUrl).projectId;
  }

  async useProject(baseUrl: string, projectId: string | null): Promise<void> {
    await this.#deps.file.update((now) => withPlatform(now, baseUrl, { projectId }));
  }

  /** @returns the login that it replaces. */
  async keep(server: OAuthServer, tokens: Tokens): Promise<Login | null> {
    return this.#keep(server, { ...this.#loginFrom(tokens), insecure: server.insecure });
  }

  /** Stores a login that cannot be renewed. @returns the login that it replaces. */
  async keepToken(server: OAuthServer, { token, expiresAt }: SessionToken): Promise<Login | null> {
    return this.#keep(server, { accessToken: token, refreshToken: null, expiresAt, insecure: server.insecure });
  }

  async #keep(server: OAuthServer, login: Login): Promise<Login | null> {
    return this.#deps.file.exclusively(async (now, write) => {
      write({ ...withPlatform(now, server.baseUrl, { login }), defaultUrl: server.baseUrl });
      return platformOf(now, server.baseUrl).login;
    });
  }

  /**
   * Removes a platform, then passes its login to `revoke` while no other command can renew it.
   * @returns the login, or null. @throws what `revoke` throws; the platform is removed anyway.
   */
  async remove(baseUrl: string, revoke: (login: Login) => Promise<void>): Promise<Login | null> {
    return this.#deps.file.exclusively(async (now, write) => {
      const { login } = platformOf(now, baseUrl);
      write(withoutPlatform(now, baseUrl));
      if (login !== null) await revoke(login);
      return login;
    });
  }

  /**
   * A token that is valid for at least one minute.
   * @param spent the token that the host just rejected.
   * @throws CliError if the user must sign in.
   */
  async accessToken(baseUrl: string, spent: string | null = null): Promise<string> {
    const { login } = platformOf(this.#deps.file.read(), baseUrl);
    if (login === null) throw new CliError(notSignedIn(baseUrl));
    return this.#isGood(login, spent) ? login.accessToken : this.#renew(baseUrl, spent);
  }

  #isGood(login: Login, spent: string | null): boolean {
    return login.accessToken !== spent && login.expiresAt - this.#deps.clock.now() > RENEW_BEFORE_MS;
  }

  /** Refresh tokens are single-use: if two commands sent the same one, the login would be revoked (RFC 9700 §4.14). */
  async #renew(baseUrl: string, spent: string | null): Promise<string> {
    return this.#deps.file.exclusively((now, write) =>
      this.#uninterrupted(async () => {
        const { login } = platformOf(now, baseUrl);
        if (login === null) throw new CliError(notSignedIn(baseUrl));
        // Another command may have renewed it while this one waited for the lock.
        if (this.#isGood(login, spent)) return login.accessToken;
        const renewed = await this.#refresh(baseUrl, login, () => write(withPlatform(now, baseUrl, { login: null })));
        write(withPlatform(now, baseUrl, { login: renewed }));
        return renewed.accessToken;
      }),
    );
  }

  /** Sending a refresh token uses it up, so Ctrl-C waits until the new one is stored. */
  async #uninterrupted<T>(work: () => Promise<T>): Promise<T> {
    let interrupted = false;
    const release = this.#deps.terminal.onInterrupt(() => {
      interrupted = true;
    });
    try {
      const done = await work();
      if (interrupted) throw new Interrupted();
      return done;
    } finally {
      release();
    }
  }

  async #refresh(baseUrl: string, login: Login, forget: () => void): Promise<Login> {
    if (login.refreshToken === null) throw new CliError(notSignedIn(baseUrl));
    const { LoginEnded, refresh } = await import("./oauth-client.ts");
    try {
      const tokens = await refresh({ baseUrl, insecure: login.insecure }, login.refreshToken);
      const refreshToken = tokens.refreshToken ?? login.refreshToken;
      return { ...login, ...this.#loginFrom({ ...tokens, refreshToken }) };
    } catch (error) {
      if (error instanceof LoginEnded) forget();
      throw error;
    }
  }

  #loginFrom(tokens: Tokens): Pick<Login, "accessToken" | "refreshToken" | "expiresAt"> {
    const { accessToken, refreshToken, expiresInSeconds } = tokens;
    return { accessToken, refreshToken, expiresAt: this.#deps.clock.now() + expiresInSeconds * 1000 };
  }
}

function notSignedIn(baseUrl: string): string {
  return `You are not signed in to ${baseUrl}. Run \`fairlead login --base-url ${baseUrl}\`, or set FAIRLEAD_TOKEN.`;
}
