import { systemClock } from "@fairlead/protocol/values/clock";
import { systemIds } from "@fairlead/protocol/values/ids";
import type { z } from "zod";
import { urlOf } from "../../http/listening/listen.ts";
import { parseInput, validationError } from "../../http/requests/validation.ts";
import type { BillingService } from "../../money/billing/billing-service.ts";
import { createBillingServices } from "../../money/money-room.ts";
import { openProjects } from "../../people/projects/project-room.ts";
import { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import { joinForNow } from "../cluster/join-for-now.ts";
import type { ServerMembership } from "../cluster/membership.ts";
import type { Config } from "../config/config.ts";
import { acquireServerLock, type ServerLock } from "../db/postgres/server-lock.ts";
import { requireStore } from "../db/store-presence.ts";
import { type Installation, openInstallation, type Ports } from "../installation-room.ts";
import { createLog } from "../process/log.ts";
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

/** Administration on the machine itself. Every failure is a `DomainError` or a `StartError` with a message for the operator. */
export interface LocalAdmin {
  /** Returns the user with this email address; creates it if it does not exist. */
  createUser(input: CreateUserInput): Promise<CreateUserAnswer>;
  /** Creates a session token; `ttlSeconds` defaults to 12 hours, at most 30 days. */
  createToken(input: CreateTokenInput): Promise<CreateTokenAnswer>;
  /** Creates a password reset link: valid for one hour, can be used once, ends the user's other sessions. */
  resetLink(input: ResetLinkInput): Promise<LinkAnswer>;
  /** Creates a first-admin setup link: valid for 24 hours, can be used once. */
  setUpLink(): Promise<LinkAnswer>;
  /** Creates a new signing key. Tokens signed by the previous one stay valid until they expire, unless the input ends them. */
  rotateSigningKey(input?: RotateSigningKeyInput): Promise<RotateSigningKeyAnswer>;
  /** Adds credits to a project; a negative amount withdraws them. */
  addCredits(input: AddCreditsInput): Promise<AddCreditsAnswer>;
  /** Verifies the ledger. Reads all of it. */
  checkLedger(): Promise<LedgerReportAnswer>;
  close(): Promise<void>;
}

/** Uses the running server's admin socket; if no server holds the data folder, opens the store itself. */
export async function openLocalAdmin(config: Config): Promise<LocalAdmin> {
  await requireStore(config);
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

/** Holds the lock while it works, so that no server starts meanwhile. */
async function openStore(config: Config, lock: ServerLock): Promise<LocalAdmin> {
  try {
    const membership = await joinForNow(config);
    try {
      return await openAsMember(config, lock, membership);
    } catch (error) {
      await membership.leave();
      throw error;
    }
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function openAsMember(config: Config, lock: ServerLock, membership: ServerMembership): Promise<LocalAdmin> {
  const { platform, publicUrl, tls } = config.server;
  const ports = { clock: systemClock, ids: systemIds(() => systemClock.now()) };
  const installation = await openInstallation(config, {
    ...ports,
    membership,
    publicUrl: publicUrl ?? urlOf(platform.host, platform.port, tls === undefined ? "http" : "https"),
  });
  const { admin } = installation;
  const { billing, money } = openMoneyOffline(config, ports, installation);
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
      await membership.leave();
      lock.release();
    },
  };
}

/** The billing services an offline store needs. */
export function openMoneyOffline(
  config: Config,
  ports: Pick<Ports, "clock" | "ids">,
  installation: Installation,
): { readonly billing: BillingService; readonly money: MoneyAdmin } {
  const { projects } = openProjects({ ...ports, ...installation });
  const { mode } = config.billing;
  const log = createLog({ level: "silent" });
  const bounds = new BoundCounters();
  const billing = createBillingServices({ ...ports, ...installation, mode, projects, log, bounds });
  return { billing: billing.billing, money: new MoneyAdmin(billing) };
}

function parse<T>(schema: z.ZodType<T>, input: unknown): T {
  const result = parseInput(schema, input);
  if (result.success) return result.data;
  throw validationError(result.error, "input");
}
