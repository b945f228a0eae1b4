import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { parseArgs } from "node:util";
import { pino } from "pino";
import { createCredentials } from "../../packages/control-plane/src/access/auth/credentials.ts";
import { KeyService, type KeyWithValue } from "../../packages/control-plane/src/access/keys/key-service.ts";
import { KeyStore } from "../../packages/control-plane/src/access/keys/key-store.ts";
import { KeyUse } from "../../packages/control-plane/src/access/keys/key-use.ts";
import { NodeChangeFeed } from "../../packages/control-plane/src/fleet/nodes/node-change-feed.ts";
import { StoredNodeIdentities } from "../../packages/control-plane/src/fleet/nodes/records/node-identities.ts";
import { nodeStores } from "../../packages/control-plane/src/fleet/nodes/records/node-stores.ts";
import { loadConfig } from "../../packages/control-plane/src/installation/config/config.ts";
import {
  type Installation,
  openInstallation,
} from "../../packages/control-plane/src/installation/installation-room.ts";
import { MembershipService } from "../../packages/control-plane/src/people/members/membership-service.ts";
import { ProjectService } from "../../packages/control-plane/src/people/projects/project-service.ts";
import { projectStores } from "../../packages/control-plane/src/people/projects/project-stores.ts";
import { systemClock } from "../../packages/protocol/src/values/clock.ts";
import { systemIds } from "../../packages/protocol/src/values/ids.ts";
import { describeMachine } from "./describe-machine.ts";

/**
 * `node test/bench/credentials.ts`: what checking a session token and a project key costs, as the hosts do it, on a SQLite file; and
 * how soon a revoked one is refused. Each credential is read from the store once a second, so those reads are among the calls.
 */

const { values: options } = parseArgs({
  options: { seconds: { type: "string", default: "3" }, credentials: { type: "string", default: "100" } },
});
/** Of each measurement. */
const SECONDS = Number(options.seconds);
/** In use at once, in turn. */
const CREDENTIALS = Number(options.credentials);
const WARM_CALLS = 2000;

interface Kind {
  readonly name: string;
  readonly credentials: readonly string[];
  readonly check: (credential: string) => Promise<unknown>;
  /** Ends one as people do, through its service. */
  revoke(index: number): Promise<void>;
  /** Ends one in the store, as another program would: nobody tells the caches. */
  revokeBehind(index: number): Promise<unknown>;
  close(): Promise<void>;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function sessionTokens({
  users,
  sessions,
  db,
  tokens,
  keyRing,
}: Installation): Promise<Kind & { readonly anew: Kind["check"] }> {
  const actor = { kind: "system", name: "local_admin" } as const;
  const email = "ann@example.org";
  const { user } = await users.ensure({ email, name: "Ann", platformAdmin: false, actor });
  const credentials: string[] = [];
  for (let n = 0; n < CREDENTIALS; n++) {
    credentials.push((await users.openSession({ email, ttlSeconds: 3600, actor })).token);
  }
  const idOf = async (index: number): Promise<string> => {
    const claims = await tokens.verify(credentials[index] ?? "");
    return claims.audience === "platform" ? claims.sessionId : "";
  };
  const { authenticate } = createCredentials({
    clock: systemClock,
    tokens,
    keyRing,
    users,
    sessions,
    identities: new StoredNodeIdentities(nodeStores(db).nodes),
    memberships: new MembershipService({ db }),
    changes: new NodeChangeFeed(),
    agentAccess: { find: () => null },
    agentChanges: { listen: () => undefined },
    publicUrl: "http://localhost:8080",
    modelsUrl: "http://localhost:8081",
  });
  return {
    name: "session token",
    credentials,
    check: (token) => authenticate(`Bearer ${token}`, ["user"]),
    anew: (token) => tokens.verify(token),
    close: async () => undefined,
    revoke: async (index) => sessions.revoke({ userId: user.id, sessionId: await idOf(index), actor }),
    revokeBehind: async (index) =>
      db
        .deleteFrom("session")
        .where("id", "=", await idOf(index))
        .execute(),
  };
}

async function projectKeys({ users, audit, db }: Installation): Promise<Kind> {
  const ids = systemIds(() => systemClock.now());
  const ports = { clock: systemClock, ids };
  const user = await users.findByEmail("ann@example.org");
  if (!user) throw new Error("the user of the session tokens is not there");
  const caller = { kind: "user", userId: user.id as `usr_${string}`, platformAdmin: false } as const;
  const stores = projectStores(db);
  const projects = new ProjectService({ ...ports, audit, stores, memberships: new MembershipService({ db }) });
  const project = await projects.create(caller, { name: "Bench" });
  const keys = new KeyStore(db);
  const use = new KeyUse({ keys, clock: systemClock, log: pino({ level: "silent" }) });
  const service = new KeyService({ ...ports, keys, use, access: projects.access, audit, randomBytes });
  const made: KeyWithValue[] = [];
  for (let n = 0; n < CREDENTIALS; n++) {
    made.push(await service.create(caller, { projectId: project.id, name: `key ${n}` }));
  }
  const idOf = (index: number): string => made[index]?.key.id ?? "";
  return {
    name: "project key",
    credentials: made.map(({ value }) => value),
    check: (secret) => service.authenticate(secret),
    close: () => use.close(),
    revoke: async (index) => {
      await service.update(caller, { projectId: project.id, id: idOf(index) }, { enabled: false });
    },
    revokeBehind: (index) => db.updateTable("project_key").set({ enabled: 0 }).where("id", "=", idOf(index)).execute(),
  };
}

/** Calls one after the other; other work of the process runs between them, as it does in a server. @returns µs, sorted. */
async function measure(check: Kind["check"], credentials: readonly string[]): Promise<number[]> {
  const micros: number[] = [];
  const callOne = async (n: number): Promise<number> => {
    const credential = credentials[n % credentials.length] ?? "";
    const begun = performance.now();
    await check(credential);
    return (performance.now() - begun) * 1000;
  };
  for (let n = 0; n < WARM_CALLS; n++) await callOne(n);
  const end = performance.now() + SECONDS * 1000;
  for (let n = 0; performance.now() < end; n++) {
    micros.push(await callOne(n));
    if (n % 100 === 0) await nextTurn();
  }
  return micros.toSorted((a, b) => a - b);
}

function row(name: string, micros: readonly number[]): string {
  const at = (share: number): string => (micros[Math.floor((micros.length - 1) * share)] ?? Number.NaN).toFixed(1);
  return `| ${name} | ${at(0.5)} | ${at(0.99)} | ${at(0.999)} | ${micros.length.toLocaleString("en-US")} |`;
}

/** @returns ms from the revocation until the first refusal, with the credential in use all the time. */
async function untilRefused(
  { credentials, check }: Kind,
  index: number,
  revoke: () => Promise<unknown>,
): Promise<number> {
  const credential = credentials[index] ?? "";
  await check(credential);
  await revoke();
  const begun = performance.now();
  for (;;) {
    try {
      await check(credential);
    } catch {
      return performance.now() - begun;
    }
    await nextTurn();
  }
}

async function run(installation: Installation): Promise<void> {
  const tokens = await sessionTokens(installation);
  const keys = await projectKeys(installation);
  say(`${describeMachine()}; ${CREDENTIALS} of each kind, in turn\n`);
  say("| check | p50, µs | p99, µs | p99.9, µs | calls |\n| --- | --- | --- | --- | --- |");
  for (const kind of [tokens, keys]) say(row(kind.name, await measure(kind.check, kind.credentials)));
  say(row("a token's signature alone, each time anew", await measure(tokens.anew, tokens.credentials)));
  say("");
  for (const kind of [tokens, keys]) {
    const told = await untilRefused(kind, 0, () => kind.revoke(0));
    const untold = await untilRefused(kind, 1, () => kind.revokeBehind(1));
    say(
      `revoked ${kind.name}: refused ${told.toFixed(1)} ms after the answer; ${untold.toFixed(0)} ms when nobody tells`,
    );
    await kind.close();
  }
}

const dataDir = mkdtempSync(join(tmpdir(), "fairlead-bench-"));
const ports = { clock: systemClock, ids: systemIds(() => systemClock.now()) };
const config = loadConfig({ env: { FAIRLEAD_DATA_DIR: dataDir } });
const installation = await openInstallation(config, { ...ports, publicUrl: "http://localhost:8080" });
try {
  await run(installation);
} finally {
  await installation.close();
  rmSync(dataDir, { recursive: true });
}
