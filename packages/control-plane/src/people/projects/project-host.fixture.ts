import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { projectSchema, type Role } from "@fairlead/protocol/resources";
import { z } from "zod";
import { openLocalAdmin } from "../../installation/admin/local-admin.ts";
import { loadConfig } from "../../installation/config/config.ts";
import { openDatabase } from "../../installation/db/open.ts";
import { startServer } from "../../server.ts";
import type { STORES } from "../../testing.fixture.ts";

/** A whole server on a store of its own, and four people who call it over HTTP: Ann, Ben, Cid and Eve. */
export interface ProjectHost {
  readonly platformUrl: string;
  readonly idOf: (person: string) => string;
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  /** A project of Ann's named Support. @returns its id. */
  createProject(): Promise<string>;
  /** As the page behind an invitation does it for somebody with an account. */
  enter(projectId: string, person: string, role: Role): Promise<void>;
  /** As a deletion that waits for running calls; the server goes on with it when it looks again. */
  markDeleting(projectId: string): Promise<void>;
  close(): Promise<void>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

interface CallOptions {
  /** Ann where nobody is named. */
  readonly as?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

const PEOPLE = ["ann", "ben", "cid", "eve"];
const refusal = z.object({ error: z.object({ code: z.string(), param: z.string().nullable(), message: z.string() }) });

/** The answer's error. */
export function errorOf({ body }: Answer): z.output<typeof refusal>["error"] {
  return refusal.parse(body).error;
}

export async function openProjectHost(kind: (typeof STORES)[number]): Promise<ProjectHost> {
  const dataDir = mkdtempSync(join(tmpdir(), "fairlead-projects-"));
  const shared = await kind.openShared(dataDir);
  const location = "url" in shared.location ? shared.location : { file: join(dataDir, "fairlead.db") };
  const env = {
    FAIRLEAD_DATA_DIR: dataDir,
    FAIRLEAD_SERVER_PLATFORM_PORT: "0",
    FAIRLEAD_SERVER_INFERENCE_PORT: "0",
    FAIRLEAD_LOG_LEVEL: "silent",
    FAIRLEAD_RATE_LIMITS_INVITATIONS_PER_USER: "1000000",
    ...("url" in location ? { FAIRLEAD_DATABASE_URL: location.url } : {}),
  };
  const config = loadConfig({ env });
  const server = await startServer(config);
  const store = openDatabase(location);
  const people = new Map<string, { readonly id: string; readonly token: string }>();
  const admin = await openLocalAdmin(config);
  for (const name of PEOPLE) {
    const email = `${name}@example.org`;
    const { user } = await admin.createUser({ email, name, platformAdmin: false });
    people.set(name, { id: user.id, token: (await admin.createToken({ email })).token });
  }
  await admin.close();
  const idOf = (person: string): string => people.get(person)?.id ?? "";
  const call = async (method: string, path: string, options: CallOptions = {}): Promise<Answer> => {
    const { as = "ann", body, headers } = options;
    const type = body === undefined ? {} : { "content-type": "application/json" };
    const response = await fetch(`${server.platformUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${people.get(as)?.token}`, ...type, ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, headers: response.headers, body: await response.json() };
  };
  return {
    platformUrl: server.platformUrl,
    idOf,
    call,
    createProject: async () => {
      const { body } = await call("POST", "/v1/projects", { body: { name: "Support" } });
      return z.object({ project: projectSchema }).parse(body).project.id;
    },
    enter: async (projectId, person, role) => {
      const row = { project_id: projectId, user_id: idOf(person), role, created_at: 0 };
      await store.db.insertInto("member").values(row).execute();
    },
    markDeleting: async (projectId) => {
      await store.db.updateTable("project").set({ deleting_since: 1 }).where("id", "=", projectId).execute();
    },
    close: async () => {
      await server.close();
      await store.close();
      await shared.close();
      rmSync(dataDir, { recursive: true });
    },
  };
}
