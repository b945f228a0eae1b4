import { once } from "node:events";
import { chmodSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DomainError } from "@fairlead/protocol/errors";
import type { IdSource } from "@fairlead/protocol/values/ids";
import { createHttpApp, type HttpApp } from "../../http/http-app.ts";
import { snapshotSchema } from "../backup/snapshot.ts";
import type { Log } from "../process/log.ts";
import { StartError } from "../process/start-error.ts";
import {
  type AdminService,
  createTokenAnswerSchema,
  createTokenSchema,
  createUserAnswerSchema,
  createUserSchema,
  linkAnswerSchema,
  noInputSchema,
  resetLinkSchema,
  rotateSigningKeyAnswerSchema,
  rotateSigningKeySchema,
} from "./admin-service.ts";
import { addCreditsAnswerSchema, addCreditsSchema, ledgerReportSchema, type MoneyAdmin } from "./money-admin.ts";
import { logLevelAnswerSchema, logLevelSchema, type OperationsAdmin } from "./operations-admin.ts";

/** HTTP over a socket file that only the owner of the data folder can open. */
export interface AdminSocket {
  close(): Promise<void>;
}

export interface AdminSocketOptions {
  readonly dataDir: string;
  readonly admin: AdminService;
  readonly money: MoneyAdmin;
  readonly operations: OperationsAdmin;
  readonly ids: IdSource;
  readonly log: Log;
}

export const CREATE_USER_PATH = "/v1/admin/users";
export const CREATE_TOKEN_PATH = "/v1/admin/tokens";
export const RESET_LINK_PATH = "/v1/admin/reset-links";
export const SET_UP_LINK_PATH = "/v1/admin/set-up-links";
export const ROTATE_SIGNING_KEY_PATH = "/v1/admin/signing-keys";
export const ADD_CREDITS_PATH = "/v1/admin/credits";
export const CHECK_LEDGER_PATH = "/v1/admin/ledger:check";
export const SNAPSHOT_PATH = "/v1/admin/snapshots";
export const LOG_LEVEL_PATH = "/v1/admin/log-level";

/** Maximum length of `sun_path` in a socket address, including the terminating zero. */
const MAX_SOCKET_PATH_BYTES = 107;

export function adminSocketPath(dataDir: string): string {
  return join(dataDir, "admin.sock");
}

/** The caller holds the server lock, so an existing socket file is stale. */
export async function openAdminSocket(options: AdminSocketOptions): Promise<AdminSocket> {
  const { dataDir, admin, money, operations, ids, log } = options;
  const routes = (app: HttpApp): void => {
    registerAdminRoutes(app, admin);
    registerMoneyRoutes(app, money);
    registerOperationsRoutes(app, operations);
  };
  const app = createHttpApp({ ids, log, routes });
  // Bound in a folder of mode 0700 and moved once its own mode is set, so that no one can connect in between.
  const privateDir = mkdtempSync(join(dataDir, ".admin-"));
  try {
    const bound = join(privateDir, "s");
    refuseLongPath(bound);
    await app.ready();
    app.server.listen(bound);
    await once(app.server, "listening");
    chmodSync(bound, 0o600);
    renameSync(bound, adminSocketPath(dataDir));
  } catch (error) {
    await app.close();
    throw error;
  } finally {
    rmSync(privateDir, { recursive: true, force: true });
  }
  return {
    close: async () => {
      rmSync(adminSocketPath(dataDir), { force: true });
      await app.close();
    },
  };
}

function registerAdminRoutes(app: HttpApp, admin: AdminService): void {
  app.post(
    CREATE_USER_PATH,
    { schema: { body: createUserSchema, response: { 200: createUserAnswerSchema } } },
    async (request) => admin.createUser(request.body),
  );
  app.post(
    CREATE_TOKEN_PATH,
    { schema: { body: createTokenSchema, response: { 200: createTokenAnswerSchema } } },
    async (request) => admin.createToken(request.body),
  );
  app.post(
    RESET_LINK_PATH,
    { schema: { body: resetLinkSchema, response: { 200: linkAnswerSchema } } },
    async (request) => admin.resetLink(request.body),
  );
  app.post(SET_UP_LINK_PATH, { schema: { body: noInputSchema, response: { 200: linkAnswerSchema } } }, async () =>
    admin.setUpLink(),
  );
  app.post(
    ROTATE_SIGNING_KEY_PATH,
    { schema: { body: rotateSigningKeySchema, response: { 200: rotateSigningKeyAnswerSchema } } },
    async (request) => admin.rotateSigningKey(request.body),
  );
}

function registerMoneyRoutes(app: HttpApp, money: MoneyAdmin): void {
  app.post(
    ADD_CREDITS_PATH,
    { schema: { body: addCreditsSchema, response: { 200: addCreditsAnswerSchema } } },
    async (request) => money.addCredits(request.body),
  );
  app.post(CHECK_LEDGER_PATH, { schema: { body: noInputSchema, response: { 200: ledgerReportSchema } } }, async () =>
    money.checkLedger(),
  );
}

function registerOperationsRoutes(app: HttpApp, operations: OperationsAdmin): void {
  app.post(SNAPSHOT_PATH, { schema: { body: noInputSchema, response: { 200: snapshotSchema } } }, async () =>
    inWords(() => operations.snapshot()),
  );
  app.post(
    LOG_LEVEL_PATH,
    { schema: { body: logLevelSchema, response: { 200: logLevelAnswerSchema } } },
    async (request) => operations.setLogLevel(request.body),
  );
}

/** Only the operator can read the socket, so it may include details. */
async function inWords<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof StartError ? new DomainError("unavailable", error.message, { cause: error }) : error;
  }
}

function refuseLongPath(path: string): void {
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES) return;
  throw new StartError(`The path of the data folder is too long for a socket: ${path}. Choose a shorter dataDir.`);
}
