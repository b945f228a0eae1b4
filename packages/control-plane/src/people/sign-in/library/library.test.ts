import { randomBytes } from "node:crypto";
import { TestClock } from "@fairlead/protocol/testing/test-clock";
import { systemIds } from "@fairlead/protocol/values/ids";
import { getMigrations } from "better-auth/db/migration";
import { pino } from "pino";
import { expect, test } from "vitest";
import { openKeyRing } from "../../../access/auth/sealing/key-ring.ts";
import { KeyRingStore } from "../../../access/auth/sealing/key-ring-store.ts";
import { memorySealer } from "../../../access/auth/sealing/memory-sealer.ts";
import { TokenService } from "../../../access/auth/tokens/tokens.ts";
import { openMemoryStore } from "../../../testing.fixture.ts";
import { libraryOptions } from "./library.ts";
import { LibraryCalls } from "./library-calls.ts";

test("the sign-in library finds its tables as it would have created them", async () => {
  const store = await openMemoryStore();
  const clock = new TestClock();
  const ids = systemIds(() => clock.now());
  const keyRing = await openKeyRing({ store: new KeyRingStore(store.db), sealer: memorySealer(), clock, ids });
  const options = libraryOptions({
    calls: new LibraryCalls(store.db),
    tokens: new TokenService({ keyRing, installationId: "ins_1", clock }),
    publicUrl: "https://fairlead.example.org",
    secret: randomBytes(32).toString("base64url"),
    sessionSeconds: 3600,
    ids,
    randomBytes,
    log: pino({ level: "silent" }),
  });
  const plan = await getMigrations({ ...options, database: { db: store.db, type: "sqlite" } });
  expect({ ...plan, runMigrations: null, compileMigrations: null }).toMatchObject({
    toBeCreated: [],
    toBeAdded: [],
    toBeAddedIndexes: [],
    unsafeChanges: [],
    schemaProblems: [],
  });
  await store.close();
});
