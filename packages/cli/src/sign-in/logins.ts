import type { Clock } from "@fairlead/protocol/clock";
import { CliError, Interrupted } from "../cli-error.ts";
import type { Terminal } from "../terminal.ts";
import { type Login, platformOf, withoutPlatform, withPlatform } from "./credentials.ts";
import type { CredentialsFile } from "./credentials-file.ts";
import type { OAuthServer, Tokens } from "./oauth-client.ts";

/** An access token with less than this left is renewed first. */
const RENEW_BEFORE_MS = 60_000;

export interface LoginsDeps {
  readonly file: CredentialsFile;
  readonly clock: Clock;
  readonly terminal: Terminal;
}

/** The logins that rest on this machine, and their tokens. */
export class Logins {
  readonly #deps: LoginsDeps;

  constructor(deps: LoginsDeps) {
    this.#deps = deps;
  }

  /** The platform of the last login. */
  defaultUrl(): string | null {
    return this.#deps.file.read().defaultUrl;
  }

  /** The project that commands mean when none is named. */
  projectId(baseUrl: string): string | null {
    return platformOf(this.#deps.file.read(), baseUrl).projectId;
  }

  async useProject(baseUrl: string, projectId: string | null): Promise<void> {
    await this.#deps.file.update((now) => withPlatform(now, baseUrl, { projectId }));
  }

  /** @returns the login that it replaces. */
  async keep(server: OAuthServer, tokens: Tokens): Promise<Login | null> {
    const login = { ...this.#loginFrom(tokens), insecure: server.insecure };
    return this.#deps.file.exclusively(async (now, write) => {
      write({ ...withPlatform(now, server.baseUrl, { login }), defaultUrl: server.baseUrl });
      return platformOf(now, server.baseUrl).login;
    });
  }

  /**
   * Forgets a platform, and hands its login to `revoke` while no other command can renew it.
   * @returns the login, or null when there was none. @throws what `revoke` throws, after forgetting.
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
   * A token that is good for the next minute.
   * @param spent the token that the host refused just now, whatever its lifetime says.
   * @throws CliError that says to sign in.
   */
  async accessToken(baseUrl: string, spent: string | null = null): Promise<string> {
    const { login } = platformOf(this.#deps.file.read(), baseUrl);
    if (login === null) throw new CliError(notSignedIn(baseUrl));
    return this.#isGood(login, spent) ? login.accessToken : this.#renew(baseUrl, spent);
  }

  #isGood(login: Login, spent: string | null): boolean {
    return login.accessToken !== spent && login.expiresAt - this.#deps.clock.now() > RENEW_BEFORE_MS;
  }

  /** A refresh token works once: two commands that sent the same one would end the login (RFC 9700 §4.14). */
  async #renew(baseUrl: string, spent: string | null): Promise<string> {
    return this.#deps.file.exclusively((now, write) =>
      this.#uninterrupted(async () => {
        const { login } = platformOf(now, baseUrl);
        if (login === null) throw new CliError(notSignedIn(baseUrl));
        // Another command may have renewed it while this one waited.
        if (this.#isGood(login, spent)) return login.accessToken;
        const renewed = await this.#refresh(baseUrl, login, () => write(withPlatform(now, baseUrl, { login: null })));
        write(withPlatform(now, baseUrl, { login: renewed }));
        return renewed.accessToken;
      }),
    );
  }

  /** The old refresh token is spent as soon as it is sent, so Ctrl-C waits until the new one is kept. */
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
