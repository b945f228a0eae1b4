import type { Dirent } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { type DaemonBuild, daemonBuildSchema, type NamedBuild } from "@fairlead/protocol/daemon-builds";
import { parseJson } from "@fairlead/protocol/values/parse-json";
import type { Log } from "../../installation/process/log.ts";
import {
  buildForNewNodes,
  buildNotFound,
  type Download,
  findDownload,
  nameBuild,
  newestFirst,
} from "./daemon-build.ts";

export interface DaemonBuildDeps {
  /** Folders with one subfolder per version, by precedence. They need not exist. */
  readonly folders: readonly string[];
  /** The version of this control plane. */
  readonly serverVersion: string;
  readonly log: Log;
}

/** A download and the path of its archive. */
export type LocatedDownload = Download & { readonly path: string };

interface PlacedBuild {
  readonly build: DaemonBuild;
  readonly folder: string;
}

/** The available daemon builds. Read on each request, so that new versions need no restart. */
export class DaemonBuildService {
  readonly #deps: DaemonBuildDeps;
  /** Problems already logged, by folder. */
  readonly #complaints = new Map<string, string>();

  constructor(deps: DaemonBuildDeps) {
    this.#deps = deps;
  }

  get serverVersion(): string {
    return this.#deps.serverVersion;
  }

  /** Newest first. */
  async list(): Promise<readonly DaemonBuild[]> {
    return newestFirst((await this.#placed()).map(({ build }) => build));
  }

  /** The build that a bootstrap token names for a new node; null if there is none. */
  async forNewNodes(): Promise<NamedBuild | null> {
    const build = buildForNewNodes(await this.list(), this.#deps.serverVersion);
    return build && nameBuild(build);
  }

  /** @param name `fairlead-daemon-1.2.3-linux-x64.tar.gz`, or that with `.sha256`. @throws DomainError not_found */
  async find(name: string): Promise<LocatedDownload> {
    for (const { build, folder } of await this.#placed()) {
      const download = findDownload([build], name);
      if (download === null) continue;
      const path = join(folder, name);
      if (download.kind === "checksum" || (await hasSize(path, download.file.bytes))) return { ...download, path };
      this.#complain(folder, `${name} is missing or its size differs from its manifest`);
    }
    throw buildNotFound();
  }

  async #placed(): Promise<readonly PlacedBuild[]> {
    const found = new Map<string, PlacedBuild>();
    for (const parent of this.#deps.folders) {
      for (const { name } of (await entriesOf(parent)).filter((entry) => isVersionFolder(entry))) {
        const folder = join(parent, name);
        const build = await this.#read(folder);
        if (build !== null && !found.has(build.version)) found.set(build.version, { build, folder });
      }
    }
    return [...found.values()];
  }

  async #read(folder: string): Promise<DaemonBuild | null> {
    try {
      return daemonBuildSchema.parse(parseJson(await readFile(join(folder, "manifest.json"))));
    } catch (error) {
      this.#complain(folder, error instanceof Error ? error.message : String(error));
      return null;
    }
  }

  #complain(folder: string, reason: string): void {
    if (this.#complaints.get(folder) === reason) return;
    this.#complaints.set(folder, reason);
    this.#deps.log.warn({ folder, reason }, "a daemon build is not available");
  }
}

/** Copies in progress use a temporary name. */
function isVersionFolder(entry: Dirent): boolean {
  return (entry.isDirectory() || entry.isSymbolicLink()) && !entry.name.includes(".half-");
}

async function entriesOf(folder: string): Promise<readonly Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

async function hasSize(path: string, bytes: number): Promise<boolean> {
  try {
    return (await stat(path)).size === bytes;
  } catch {
    return false;
  }
}
