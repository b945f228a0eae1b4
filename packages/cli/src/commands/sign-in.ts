import type { Command } from "commander";
import { CliError, Interrupted } from "../cli-error.ts";
import { addPlatformOptions, type ClientOptions, platformHost } from "../client-options.ts";
import type { Context } from "../context.ts";
import { fetchMe, type Me } from "../me.ts";
import { print } from "../output.ts";
import type { Login } from "../sign-in/credentials.ts";
import type { OAuthServer, Tokens } from "../sign-in/oauth-client.ts";
import { formatTable } from "../table.ts";
import type { Terminal } from "../terminal.ts";
import { visible } from "../visible.ts";

interface LoginOptions extends ClientOptions {
  readonly web?: boolean;
  readonly browser: boolean;
  readonly insecure?: boolean;
}

export function addSignInCommands(program: Command, context: Context): void {
  addPlatformOptions(program.command("login"))
    .description("sign in to a platform; later commands then need no token")
    .option("--web", "sign in by a browser on this machine, without a code to enter")
    .option("--no-browser", "only print the address, do not open it")
    .option("--insecure", "allow plain http to another machine: others could read your tokens")
    .addHelpText(
      "after",
      "\nExamples:\n  fairlead login --base-url https://ai.example.org\n  fairlead login --web   # the browser is on this machine",
    )
    .action((options: LoginOptions) => login(context, options));
  addPlatformOptions(program.command("logout"))
    .description("sign out: end the login at the platform and forget it here")
    .addHelpText("after", "\nExample:\n  fairlead logout")
    .action((options: ClientOptions) => logout(context, options));
  addPlatformOptions(program.command("whoami"))
    .description("show who you are to the platform")
    .addHelpText("after", "\nExample:\n  fairlead whoami --json | jq -r .email")
    .action((options: ClientOptions) => whoami(context, options));
}

async function login(context: Context, options: LoginOptions): Promise<void> {
  const { terminal, logins } = context;
  const { url: baseUrl, settings } = platformHost(context, options);
  const server: OAuthServer = { baseUrl, insecure: options.insecure ?? false };
  const grant = options.web ? webGrant : deviceGrant;
  const tokens = await interruptible(terminal, (signal) => grant({ context, options, server, signal }));
  const replaced = await logins.keep(server, tokens);
  // Nobody holds its tokens any more. What cannot be told now runs out by itself.
  if (replaced !== null) await endLogin(baseUrl, replaced).catch(() => {});
  // The new login itself, whatever FAIRLEAD_TOKEN holds.
  const host = { ...platformHost(context, options), credential: () => logins.accessToken(baseUrl) };
  const user = await fetchMe(host);
  const text = `signed in to ${baseUrl} as ${visible(user.email)}\n`;
  print(terminal, { baseUrl, user }, { json: options.json, text: () => text });
  if (settings.find("FAIRLEAD_TOKEN") !== null) {
    terminal.note("FAIRLEAD_TOKEN is set: commands use that token instead of this login until you unset it");
  }
}

interface Grant {
  readonly context: Context;
  readonly options: LoginOptions;
  readonly server: OAuthServer;
  readonly signal: AbortSignal;
}

async function deviceGrant({ context, options, server, signal }: Grant): Promise<Tokens> {
  const { beginDeviceLogin } = await import("../sign-in/device-login.ts");
  const device = await beginDeviceLogin(server);
  const minutes = Math.max(1, Math.floor(device.expiresInSeconds / 60));
  context.terminal.note(
    `To sign in to ${server.baseUrl}, open this page on any machine:\n\n  ${device.url}\n\n` +
      `and enter the code  ${visible(device.code)}  (good for ${minutes} min)\n`,
  );
  if (options.browser) context.openBrowser(device.urlWithCode);
  return awaited(context.terminal, () => device.approved(signal));
}

async function webGrant({ context, options, server, signal }: Grant): Promise<Tokens> {
  const { beginWebLogin } = await import("../sign-in/web-login.ts");
  const web = await beginWebLogin(server);
  try {
    const opened = options.browser && context.openBrowser(web.url);
    const how = opened ? "Your browser opens. If it does not, open" : "Open";
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
    // A wait between two polls cannot be cut short, and would hold the process for seconds.
    if (error instanceof Interrupted) terminal.exitNow(error.exitCode);
    throw error;
  } finally {
    release();
  }
}

async function logout(context: Context, options: ClientOptions): Promise<void> {
  const { terminal, logins } = context;
  const { url: baseUrl, settings } = platformHost(context, options);
  const login = await logins.remove(baseUrl, (removed) =>
    endLogin(baseUrl, removed).catch((cause: unknown) => {
      throw new CliError(forgottenHereAlone(baseUrl, cause), { cause });
    }),
  );
  const text = login === null ? `you were not signed in to ${baseUrl}` : `signed out of ${baseUrl}`;
  print(terminal, { baseUrl, signedOut: login !== null }, { json: options.json, text: () => `${text}\n` });
  if (settings.find("FAIRLEAD_TOKEN") !== null)
    terminal.note("FAIRLEAD_TOKEN is still set: commands go on using that token");
}

async function endLogin(baseUrl: string, { refreshToken, accessToken, insecure }: Login): Promise<void> {
  const { revoke } = await import("../sign-in/oauth-client.ts");
  await revoke({ baseUrl, insecure }, refreshToken ?? accessToken);
}

function forgottenHereAlone(baseUrl: string, cause: unknown): string {
  const why = cause instanceof Error ? cause.message : String(cause);
  return (
    `You are signed out on this machine, but the platform could not be told: ${why}\n` +
    `Its session lives on there. End it on ${baseUrl}/account, or sign in again and use \`fairlead session revoke\`.`
  );
}

async function whoami(context: Context, options: ClientOptions): Promise<void> {
  const host = platformHost(context, options);
  const me = await fetchMe(host);
  print(context.terminal, me, { json: options.json, text: (answer) => describe(answer, host.url) });
}

function describe({ email, name, id, platformAdmin, projects }: Me, url: string): string {
  const who = `${email} (${name}, ${id}${platformAdmin ? ", platform administrator" : ""}) at ${url}`;
  const rows = projects.map((project) => [project.id, project.name, project.role]);
  return `${visible(who)}\n${rows.length === 0 ? "" : `\n${formatTable(["PROJECT", "NAME", "ROLE"], rows)}`}`;
}
