import { systemClock } from "@fairlead/protocol/clock";
import { systemIds } from "@fairlead/protocol/ids";
import type { z } from "zod";
import type { Config } from "../config.ts";
import { makeDataDir } from "../db/data-dir.ts";
import { acquireServerLock, type ServerLock } from "../db/server-lock.ts";
import { parseInput, validationError } from "../http/validation.ts";
import { openInstallation } from "../installation.ts";
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
} from "./admin-service.ts";
import { CREATE_TOKEN_PATH, CREATE_USER_PATH } from "./admin-socket.ts";

/** Administration from the machine itself. Every failure is a `DomainError` or a `StartError` with a sentence for the operator. */
export interface LocalAdmin {
  /** The user with this e-mail address, made if there is none. */
  createUser(input: CreateUserInput): Promise<CreateUserAnswer>;
  /** A session token; `ttlSeconds` is 12 hours if left out, and at most 30 days. */
  createToken(input: CreateTokenInput): Promise<CreateTokenAnswer>;
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
    close: async () => {},
  };
}

/** Holds the lock while it works, so that no server starts on a store that it changes. */
async function openStore(config: Config, lock: ServerLock): Promise<LocalAdmin> {
  try {
    const installation = await openInstallation(config, {
      clock: systemClock,
      ids: systemIds(() => systemClock.now()),
    });
    const { admin } = installation;
    return {
      createUser: async (input) => admin.createUser(parse(createUserSchema, input)),
      createToken: async (input) => admin.createToken(parse(createTokenSchema, input)),
      close: async () => {
        await installation.close();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

function parse<T>(schema: z.ZodType<T>, input: unknown): T {
  const result = parseInput(schema, input);
  if (result.success) return result.data;
  throw validationError(result.error, "input");
}
