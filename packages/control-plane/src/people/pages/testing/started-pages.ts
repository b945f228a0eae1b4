import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type LocalAdmin, openLocalAdmin } from "../../../installation/admin/local-admin.ts";
import { loadConfig } from "../../../installation/config/config.ts";
import { type RunningServer, startServer } from "../../../server.ts";
import { FakeBrowser, type Shown } from "./fake-browser.ts";

/** A server for tests of its pages, and ways to read them. */

export const PASSWORD = "correct horse battery";
export const VOID_LINK = "This link was already used, replaced or revoked, or has expired.";

export interface Started {
  readonly server: RunningServer;
  readonly admin: LocalAdmin;
  browser(): FakeBrowser;
  stop(): Promise<void>;
}

export async function start(env: Readonly<Record<string, string>> = {}): Promise<Started> {
  const dir = mkdtempSync(join(tmpdir(), "fairlead-pages-"));
  const config = loadConfig({
    env: {
      FAIRLEAD_DATA_DIR: join(dir, "data"),
      FAIRLEAD_SERVER_PLATFORM_PORT: "0",
      FAIRLEAD_SERVER_INFERENCE_PORT: "0",
      FAIRLEAD_LOG_LEVEL: "silent",
      ...env,
    },
  });
  const server = await startServer(config);
  const admin = await openLocalAdmin(config);
  return {
    server,
    admin,
    browser: () => new FakeBrowser(server.platformUrl),
    stop: async () => {
      await admin.close();
      await server.close();
      rmSync(dir, { recursive: true });
    },
  };
}

export const pathOf = (url: string): string => new URL(url).pathname;
export const alertIn = ({ text }: Shown): string | undefined => /role="alert">(.*?)<\/p>/.exec(text)?.[1];
export const errorOf = ({ text }: Shown, field: string): string | undefined =>
  new RegExp(`id="${field}-error">(.*?)</p>`).exec(text)?.[1];
export const withoutIds = ({ text }: Shown): string =>
  text.replaceAll(/req_\w+/g, "req").replaceAll(/value="[\w-]{43}"/g, "value");
