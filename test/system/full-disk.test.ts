import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { StartedServer } from "../support/started-server.ts";
import { waitFor } from "../support/wait-for.ts";

const SOON_MS = 60_000;
const canMount = process.getuid?.() === 0 && existsSync("/bin/mount");

describe.runIf(canMount)("a server whose disk is full (needs root and mounts)", () => {
  let dir: string;
  let server: StartedServer;
  let token: string;

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), "fairlead-full-"));
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=24m,mode=700", "fairlead-full-disk", dir]);
    server = await StartedServer.start({ dataDir: join(dir, "data") });
    token = await server.asOperator(async (admin) => {
      await admin.createUser({ email: "ann@example.org", name: "Ann", platformAdmin: true });
      return (await admin.createToken({ email: "ann@example.org" })).token;
    });
  });

  afterAll(async () => {
    await server?.remove();
    execFileSync("umount", [dir]);
    rmSync(dir, { recursive: true });
  });

  const authorization = (): Record<string, string> => ({ authorization: `Bearer ${token}` });
  const createProject = async (): Promise<{ status: number; text: string }> => {
    const response = await fetch(`${server.url}/v1/projects`, {
      method: "POST",
      headers: { ...authorization(), "content-type": "application/json" },
      body: JSON.stringify({ name: "Support" }),
    });
    return { status: response.status, text: await response.text() };
  };
  const readiness = async (): Promise<{ status: number; text: string }> => {
    const response = await fetch(`${server.url}/readyz`);
    return { status: response.status, text: await response.text() };
  };
  const writable = async (): Promise<string | undefined> => {
    const text = await (await fetch(`${server.url}/metrics`, { headers: authorization() })).text();
    return /^fairlead_store_writable (\d)$/m.exec(text)?.[1];
  };

  test("returns 503, is not ready, still serves reads, and recovers by itself", async () => {
    expect((await createProject()).status).toBe(200);
    const filler = join(dir, "somebody-elses");
    const { bavail, bsize } = statfsSync(dir);
    writeFileSync(filler, Buffer.alloc(bavail * bsize));

    // The write-ahead log may have free pages for a few writes.
    await waitFor("a write that finds no room", SOON_MS, async () => (await createProject()).status !== 200);
    expect(await createProject()).toMatchObject({ status: 503, text: expect.stringContaining("disk full") as string });
    expect(await readiness()).toMatchObject({
      status: 503,
      text: expect.stringContaining("The server is not ready: the store cannot write: disk full.") as string,
    });
    expect(await writable()).toBe("0");
    expect((await fetch(`${server.url}/v1/projects`, { headers: authorization() })).status).toBe(200);

    rmSync(filler);
    await waitFor("readiness", SOON_MS, async () => (await readiness()).status === 200);
    expect((await createProject()).status).toBe(200);
    expect(await writable()).toBe("1");
  });
});
