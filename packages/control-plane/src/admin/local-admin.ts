import { systemClock } from "@fairlead/protocol/clock";
import { systemIds } from "@fairlead/protocol/ids";
import type { z } from "zod";
import type { BillingService } from "../billing/billing-service.ts";
import { createBillingServices } from "../billing/billing-services.ts";
import type { Config } from "../config.ts";
import { makeDataDir } from "../db/data-dir.ts";
import { acquireServerLock, type ServerLock } from "../db/server-lock.ts";
import { urlOf } from "../http/listen.ts";
import { parseInput, validationError } from "../http/validation.ts";
import { type Installation, openInstallation, type Ports } from "../installation.ts";
import { createLog } from "../log.ts";
import { MembershipService } from "../members/membership-service.ts";
import { ProjectService } from "../projects/project-service.ts";
import { projectStores } from "../projects/project-stores.ts";
import { adminClient } from "./admin-client.ts";
import {
  type CreateTokenAnswer,
  type CreateTokenInput,
  type CreateUserAnswer,
  type CreateUserInput,
  createTokenAnswerSchema,
  createTokenSchema,
  createUserAnswerSchema,
  createUserSchema,
  type LinkAnswer,
  linkAnswerSchema,
  type ResetLinkInput,
  type RotateSigningKeyAnswer,
  type RotateSigningKeyInput,
  resetLinkSchema,
  rotateSigningKeyAnswerSchema,
  rotateSigningKeySchema,
} from "./admin-service.ts";
import {
  ADD_CREDITS_PATH,
  CHECK_LEDGER_PATH,
  CREATE_TOKEN_PATH,
  CREATE_USER_PATH,
  RESET_LINK_PATH,
  ROTATE_SIGNING_KEY_PATH,
  SET_UP_LINK_PATH,
} from "./admin-socket.ts";
import {
  type AddCreditsAnswer,
  type AddCreditsInput,
  addCreditsAnswerSchema,
  addCreditsSchema,
  type LedgerReportAnswer,
  ledgerReportSchema,
  MoneyAdmin,
} from "./money-admin.ts";

/** Administration from the machine itself. Every failure is a `DomainError` or a `StartError` with a sentence for the operator. */
export interface LocalAdmin {
  /** The user with this e-mail address, made if there is none. */
  createUser(input: CreateUserInput): Promise<CreateUserAnswer>;
  /** A session token; `ttlSeconds` is 12 hours if left out, and at most 30 days. */
  createToken(input: CreateTokenInput): Promise<CreateTokenAnswer>;
  /** A link, good for one hour and one use, by which a user sets a new password; using it ends their other sessions. */
  resetLink(input: ResetLinkInput): Promise<LinkAnswer>;
  /** A link, good for 24 hours and one use, by which the first administrator makes their account. */
  setUpLink(): Promise<LinkAnswer>;
  /** Makes a new key that signs tokens from now on; those that the one before signed are good until they run out, or end. */
  rotateSigningKey(input?: RotateSigningKeyInput): Promise<RotateSigningKeyAnswer>;
  /** Money for a project, or out of it where the amount is below zero. */
  addCredits(input: AddCreditsInput): Promise<AddCreditsAnswer>;
  /** Proves that all money is accounted for. Reads the whole ledger. */
  checkLedger(): Promise<LedgerReportAnswer>;
  close(): Promise<void>;
}

/** Through the running server's admin socket; where no server holds the data folder, on the store itself. */
export async function openLocalAdmin(config: Config): Promise<LocalAdmin> {
  makeDataDir(config.dataDir);
  const lock = acquireServerLock(config.dataDir);
  return lock ? openStore(config, lock) : askServer(config);
}

function askServer(config: Config): LocalAdmin {
  const call = adminClient(config.dataDir, systemClock);
  return {
    createUser: (input) => call(CREATE_USER_PATH, input, createUserAnswerSchema),
    createToken: (input) => call(CREATE_TOKEN_PATH, input, createTokenAnswerSchema),
    resetLink: (input) => call(RESET_LINK_PATH, input, linkAnswerSchema),
    setUpLink: () => call(SET_UP_LINK_PATH, {}, linkAnswerSchema),
    rotateSigningKey: (input = {}) => call(ROTATE_SIGNING_KEY_PATH, input, rotateSigningKeyAnswerSchema),
    addCredits: (input) => call(ADD_CREDITS_PATH, input, addCreditsAnswerSchema),
    checkLedger: () => call(CHECK_LEDGER_PATH, {}, ledgerReportSchema),
    close: async () => {},
  };
}

/** Holds the lock while it works, so that no server starts on a store that it changes. */
async function openStore(config: Config, lock: ServerLock): Promise<LocalAdmin> {
  try {
    const { platform, publicUrl, tls } = config.server;
    const ports = { clock: systemClock, ids: systemIds(() => systemClock.now()) };
    const installation = await openInstallation(config, {
      ...ports,
      publicUrl: publicUrl ?? urlOf(platform.host, platform.port, tls === undefined ? "http" : "https"),
    });
    const { admin } = installation;
    const { billing, money } = openMoney(config, ports, installation);
    return {
      createUser: async (input) => admin.createUser(parse(createUserSchema, input)),
      createToken: async (input) => admin.createToken(parse(createTokenSchema, input)),
      resetLink: async (input) => admin.resetLink(parse(resetLinkSchema, input)),
      setUpLink: () => admin.setUpLink(),
      rotateSigningKey: async (input = {}) => admin.rotateSigningKey(parse(rotateSigningKeySchema, input)),
      addCredits: async (input) => money.addCredits(parse(addCreditsSchema, input)),
      checkLedger: () => money.checkLedger(),
      close: async () => {
        await billing.close();
        await installation.close();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** What people's money needs of the store, on whatever holds it. */
export function openMoney(
  config: Config,
  ports: Pick<Ports, "clock" | "ids">,
  installation: Installation,
): { readonly billing: BillingService; readonly money: MoneyAdmin } {
  const { db } = installation;
  const memberships = new MembershipService({ db });
  const projects = new ProjectService({ ...ports, ...installation, memberships, stores: projectStores(db) });
  const { mode } = config.billing;
  const log = createLog({ level: "silent" });
  const billing = createBillingServices({ ...ports, ...installation, mode, projects, log });
  return { billing: billing.billing, money: new MoneyAdmin(billing) };
}

function parse<T>(schema: z.ZodType<T>, input: unknown): T {
  const result = parseInput(schema, input);
  if (result.success) return result.data;
  throw validationError(result.error, "input");
}
