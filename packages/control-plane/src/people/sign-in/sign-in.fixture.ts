import { randomBytes } from "node:crypto";
import { RequestTally } from "@fairlead/hosting/requests/request-tally";
import { systemClock } from "@fairlead/protocol/values/clock";
import { type IdSource, systemIds } from "@fairlead/protocol/values/ids";
import { pino } from "pino";
import { AuditService } from "../../access/audit/audit-service.ts";
import { createAuthenticate } from "../../access/auth/authenticate.ts";
import { type KeyRing, openKeyRing } from "../../access/auth/sealing/key-ring.ts";
import { KeyRingStore } from "../../access/auth/sealing/key-ring-store.ts";
import { memorySealer } from "../../access/auth/sealing/memory-sealer.ts";
import { TokenService } from "../../access/auth/tokens/tokens.ts";
import { RateLimit } from "../../http/limits/rate-limit.ts";
import { listen, reservePort } from "../../http/listening/listen.ts";
import { createPlatformHost, type PlatformApp } from "../../http/platform-host.ts";
import type { OpenedDatabase } from "../../installation/db/open.ts";
import { BoundCounters } from "../../telemetry/bounds/bound-counters.ts";
import type { OpenStore } from "../../testing.fixture.ts";
import { MembershipService } from "../members/membership-service.ts";
import { ProjectService } from "../projects/project-service.ts";
import { projectStores } from "../projects/project-stores.ts";
import { registerMeRoutes } from "../users/me-routes.ts";
import { SessionService } from "../users/session-service.ts";
import type { UserRecord } from "../users/user.ts";
import { UserService } from "../users/user-service.ts";
import { registerOAuthRoutes } from "./oauth/oauth-routes.ts";
import type { SignedIn, SignInCaller } from "./sign-in.ts";
import { type SignInSettings, signInSettings } from "./sign-in-config.ts";
import { createSignInServices, type SignInServices } from "./sign-in-room.ts";

/** A platform host with nothing but sign-in, on a real port. Time is the machine's, since the library asks no other clock. */
export interface SignInHost extends SignInServices {
  readonly url: string;
  readonly store: OpenedDatabase;
  readonly users: UserService;
  readonly sessions: SessionService;
  readonly projects: ProjectService;
  readonly keyRing: KeyRing;
  readonly tokens: TokenService;
  /** A user with a password. */
  /** @param password null for somebody who has none. */
  addUser(email: string, password?: string | null): Promise<UserRecord>;
  /** Actions of the audit log, the oldest first. */
  audited(): Promise<readonly string[]>;
  close(): Promise<void>;
}

export const PASSWORD = "correct horse battery staple";

export const BROWSER: SignInCaller = {
  origin: { requestId: "req_1", address: "192.0.2.7" },
  userAgent: "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0",
};

/** The header that a browser sends back. */
export function cookieOf({ setCookies }: Pick<SignedIn, "setCookies">): string {
  return setCookies.map((cookie) => cookie.split(";")[0]).join("; ");
}

/** What stands below the sign-in. */
async function openParts(store: OpenedDatabase) {
  const { db } = store;
  const clock = systemClock;
  const ids: IdSource = systemIds(() => systemClock.now());
  const sealer = memorySealer();
  const audit = new AuditService({ clock, ids });
  const keyRing = await openKeyRing({ store: new KeyRingStore(db), sealer, clock, ids });
  const tokens = new TokenService({ keyRing, installationId: "ins_1", clock });
  const users = new UserService({ db, audit, tokens, clock, ids, randomBytes });
  const sessions = new SessionService({ db, audit, clock, randomBytes });
  const memberships = new MembershipService({ db });
  const projects = new ProjectService({ stores: projectStores(db), memberships, audit, clock, ids });
  const log = pino({ level: "silent" });
  return { db, store, clock, ids, sealer, audit, keyRing, tokens, users, sessions, projects, log };
}

type Parts = Awaited<ReturnType<typeof openParts>> & SignInServices & { readonly url: string };

function createHost(parts: Parts): PlatformApp {
  const { url, keyRing, users: sessions, ...services } = parts;
  const nodes = { find: async () => null };
  return createPlatformHost({
    ...services,
    authenticate: createAuthenticate({ ...services, sessions, nodes, modelsUrl: "http://models" }),
    requests: new RequestTally(),
    document: { publicUrl: url, inferencePaths: {} },
    health: { publicJwks: () => keyRing.publicJwks(), ready: async () => undefined },
    routes: (scope) => {
      registerMeRoutes(scope, parts);
      const limit = new RateLimit({ what: "calls", limit: 10_000, seconds: 60 });
      registerOAuthRoutes(scope, { ...services, limit, deviceCodes: limit, publicUrl: url });
    },
  });
}

/** @param settings of `signIn` in the config. @param publicUrl where a proxy stands in front. */
export async function openSignInHost(
  open: OpenStore,
  settings: Partial<SignInSettings> = {},
  publicUrl?: string,
): Promise<SignInHost> {
  const below = await openParts(await open());
  const address = { host: "127.0.0.1", setting: "test" };
  const reserved = await reservePort({ ...address, port: 0 });
  const url = `http://127.0.0.1:${reserved.port}`;
  const services = createSignInServices({
    ...below,
    randomBytes,
    signInSecret: randomBytes(32).toString("base64url"),
    bounds: new BoundCounters(),
    publicUrl: publicUrl ?? url,
    settings: { ...signInSettings.parse({}), ...settings },
  });
  await services.oauth.start();
  const parts = { ...below, ...services, url };
  const app = createHost(parts);
  await app.ready();
  await reserved.release();
  await listen(app.server, { ...address, port: reserved.port });
  const { db, store } = below;
  return {
    ...parts,
    addUser: async (email, password = PASSWORD) => {
      const prepared =
        password === null ? null : await services.signIn.preparePassword({ email, password }, BROWSER.origin);
      const actor = { kind: "system", name: "server" } as const;
      const input = { email, name: "Ann", platformAdmin: false, password: prepared, actor };
      return db.transaction().execute((transaction) => services.signIn.createUser(transaction, input));
    },
    audited: async () => {
      const rows = await db.selectFrom("audit_event").select("action").orderBy("id").execute();
      return rows.map(({ action }) => action);
    },
    close: async () => {
      app.server.closeAllConnections();
      await app.close();
      await store.close();
    },
  };
}
