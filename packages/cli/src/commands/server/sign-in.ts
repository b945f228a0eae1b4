import type { Command } from "commander";
import { CliError, Interrupted } from "../../cli-error.ts";
import type { CommandContext } from "../../context.ts";
import {
  addPlatformOptions,
  type ClientOptions,
  type PlatformConnection,
  platformHost,
} from "../../platform/client-options.ts";
import { Refused, send } from "../../platform/http-client.ts";
import { fetchMe, type Me } from "../../platform/me.ts";
import type { Login } from "../../sign-in/credentials.ts";
import type { OAuthServer, Tokens } from "../../sign-in/oauth-client.ts";
import { requireSafeAddress } from "../../sign-in/platform-address.ts";
import { readSessionToken } from "../../sign-in/session-token.ts";
import { print } from "../../terminal/output.ts";
import { formatTable } from "../../terminal/table.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { visible } from "../../terminal/visible.ts";

interface LoginOptions extends ClientOptions {
  readonly web?: boolean;
  readonly withToken?: boolean;
  readonly browser: boolean;
  readonly insecure?: boolean;
}

export function addSignInCommands(program: Command, context: CommandContext): void {
  addPlatformOptions(program.command("login"))
    .description("sign in to a platform in a browser; prints a URL and a code that you can enter on any machine")
    .option("--web", "sign in with a browser on this machine, without entering a code")
    .option(
      "--with-token",
      "sign in with a session token from stdin, without a browser; the login expires with the token",
    )
    .option("--no-browser", "print the URL without opening it")
    .option("--insecure", "allow plain HTTP to another machine; others on the network could read your tokens")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead login --base-url https://ai.example.org\n  fairlead login --web   # the browser is on this machine\n" +
        "  fairlead admin token --email ann@example.org | fairlead login --with-token   # on the server",
    )
    .action((options: LoginOptions) => login(context, options));
  addPlatformOptions(program.command("logout"))
    .description("sign out: revoke the login and remove it from this machine")
    .addHelpText("after", "\nExample:\n  fairlead logout")
    .action((options: ClientOptions) => logout(context, options));
  addPlatformOptions(program.command("token"))
    .description("print an access token of this login, for other programs; valid for at least one minute")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead token --base-url https://ai.example.org\n" +
        '  curl -H "authorization: Bearer $(fairlead token)" "$FAIRLEAD_BASE_URL/v1/projects"',
    )
    .action((options: ClientOptions) => printToken(context, options));
  addPlatformOptions(program.command("whoami"))
    .description("show the signed-in user and their projects")
    .addHelpText("after", "\nExample:\n  fairlead whoami --json | jq -r .email")
    .action((options: ClientOptions) => whoami(context, options));
}

async function login(context: CommandContext, options: LoginOptions): Promise<void> {
  const { terminal } = context;
  const { url: baseUrl, settings } = platformHost(context, options);
  const server: OAuthServer = { baseUrl, insecure: options.insecure ?? false };
  const replaced = await (options.withToken ? loginWithToken : loginWithBrowser)(context, options, server);
  // The replaced login is unused now. If it cannot be revoked, it expires.
  if (replaced !== null) await endLogin(baseUrl, replaced).catch(() => {});
  // Check the new login, not FAIRLEAD_TOKEN.
  const host = loginHost(context, options);
  const user = await fetchMe(host);
  const text = `signed in to ${baseUrl} as ${visible(user.email)}\n`;
  print(terminal, { baseUrl, user }, { json: options.json, text: () => text });
  if (settings.find("FAIRLEAD_TOKEN") !== null) {
    terminal.note(
      "FAIRLEAD_TOKEN is set, so commands use that token instead of this login. Run `unset FAIRLEAD_TOKEN` to use the login.",
    );
  }
}

/** The stored login, even if FAIRLEAD_TOKEN is set. */
function loginHost(context: CommandContext, options: ClientOptions): PlatformConnection {
  const host = platformHost(context, options);
  return { ...host, credentialSetting: null, credential: (spent) => context.logins.accessToken(host.url, spent) };
}

/** @returns the login that it replaces. */
async function loginWithBrowser(
  context: CommandContext,
  options: LoginOptions,
  server: OAuthServer,
): Promise<Login | null> {
  const grant = options.web ? webGrant : deviceGrant;
  const tokens = await interruptible(context.terminal, (signal) => grant({ context, options, server, signal }));
  return context.logins.keep(server, tokens);
}

/** @returns the login that it replaces. @throws CliError if the platform rejects the token; nothing is stored then. */
async function loginWithToken(
  context: CommandContext,
  options: LoginOptions,
  server: OAuthServer,
): Promise<Login | null> {
  const { terminal, logins } = context;
  requireSafeAddress(server.baseUrl, server.insecure);
  if (terminal.inputIsInteractive) terminal.note("paste the token, then Ctrl-D");
  const token = readSessionToken(await terminal.readInput());
  const given = { name: "FAIRLEAD_TOKEN", source: "stdin" } as const;
  await fetchMe({ ...platformHost(context, options), credentialSetting: given, credential: async () => token.token });
  return logins.keepToken(server, token);
}

interface Grant {
  readonly context: CommandContext;
  readonly options: LoginOptions;
  readonly server: OAuthServer;
  readonly signal: AbortSignal;
}

async function deviceGrant({ context, options, server, signal }: Grant): Promise<Tokens> {
  const { beginDeviceLogin } = await import("../../sign-in/device-login.ts");
  const device = await beginDeviceLogin(server);
  const minutes = Math.max(1, Math.floor(device.expiresInSeconds / 60));
  context.terminal.note(
    `To sign in to ${server.baseUrl}, open this page on any machine:\n\n  ${device.url}\n\n` +
      `and enter the code  ${visible(device.code)}  (valid for ${minutes} min)\n`,
  );
  if (options.browser && context.openBrowser(device.urlWithCode)) context.terminal.note("Opening your browser.\n");
  return awaited(context.terminal, () => device.approved(signal));
}

async function webGrant({ context, options, server, signal }: Grant): Promise<Tokens> {
  const { beginWebLogin } = await import("../../sign-in/web-login.ts");
  const web = await beginWebLogin(server);
  try {
    const opened = options.browser && context.openBrowser(web.url);
    const how = opened ? "Opening your browser. If it does not open, visit" : "Open";
    context.terminal.note(`${how} this page on this machine:\n\n  ${web.url}\n`);
    return await awaited(context.terminal, () => web.approved(signal));
  } finally {
    web.close();
  }
}

async function awaited(terminal: Terminal, approved: () => Promise<Tokens>): Promise<Tokens> {
  const end = await terminal.busy("Waiting for the browser");
  try {
    const tokens = await approved();
    end("Approved");
    return tokens;
  } catch (error) {
    end("Not signed in");
    throw error;
  }
}

async function interruptible<T>(terminal: Terminal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupt = new AbortController();
  const release = terminal.onInterrupt(() => interrupt.abort(new Interrupted()));
  try {
    return await work(interrupt.signal);
  } catch (error) {
    // The wait between two polls cannot be aborted and would delay the exit for seconds.
    if (error instanceof Interrupted) terminal.exitNow(error.exitCode);
    throw error;
  } finally {
    release();
  }
}

async function logout(context: CommandContext, options: ClientOptions): Promise<void> {
  const { terminal, logins } = context;
  const { url: baseUrl, settings } = platformHost(context, options);
  const login = await logins.remove(baseUrl, (removed) =>
    endLogin(baseUrl, removed).catch((cause: unknown) => {
      throw new CliError(forgottenHereAlone(baseUrl, cause), { cause });
    }),
  );
  const text = login === null ? `not signed in to ${baseUrl}` : `signed out of ${baseUrl}`;
  print(terminal, { baseUrl, signedOut: login !== null }, { json: options.json, text: () => `${text}\n` });
  if (settings.find("FAIRLEAD_TOKEN") !== null)
    terminal.note("FAIRLEAD_TOKEN is still set, so commands keep using that token. Run `unset FAIRLEAD_TOKEN`.");
}

async function endLogin(baseUrl: string, { refreshToken, accessToken, insecure }: Login): Promise<void> {
  if (refreshToken === null) return endSession(baseUrl, accessToken);
  const { revoke } = await import("../../sign-in/oauth-client.ts");
  await revoke({ baseUrl, insecure }, refreshToken);
}

/** Revokes a `--with-token` login, whose session the OAuth server does not know. */
async function endSession(baseUrl: string, token: string): Promise<void> {
  const host = {
    name: "platform host",
    url: baseUrl,
    urlSetting: "--base-url",
    credentialSetting: { name: "FAIRLEAD_TOKEN", source: "the login" },
    credential: async () => token,
  } as const;
  const path = `/v1/me/sessions/${encodeURIComponent(readSessionToken(token).sessionId)}`;
  try {
    await send(host, { method: "DELETE", path });
  } catch (error) {
    // The session has already ended.
    if (!(error instanceof Refused && ENDED.includes(error.code ?? ""))) throw error;
  }
}

const ENDED = ["invalid_credential", "expired_credential", "not_found"];

function forgottenHereAlone(baseUrl: string, cause: unknown): string {
  const why = cause instanceof Error ? cause.message : String(cause);
  return (
    `You are signed out on this machine, but the login could not be revoked on the platform: ${why}\n` +
    `The session is still active there. Revoke it on ${baseUrl}/account, or sign in again and run \`fairlead session revoke\`.`
  );
}

async function printToken(context: CommandContext, options: ClientOptions): Promise<void> {
  const token = await platformHost(context, options).credential();
  print(context.terminal, { token }, { json: options.json, text: () => `${token}\n` });
}

async function whoami(context: CommandContext, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const me = await fetchMe(host);
  print(context.terminal, me, { json: options.json, text: (answer) => describe(answer, host.url) });
}

function describe({ email, name, id, platformAdmin, projects }: Me, url: string): string {
  const who = `${email} (${name}, ${id}${platformAdmin ? ", platform administrator" : ""}) at ${url}`;
  const rows = projects.map((project) => [project.id, project.name, project.role]);
  return `${visible(who)}\n${rows.length === 0 ? "" : `\n${formatTable(["PROJECT", "NAME", "ROLE"], rows)}`}`;
}
