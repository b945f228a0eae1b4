import { join } from "node:path";

/** Where the quickstart keeps what. One data folder is one installation. */
export interface Installation {
  readonly root: string;
  readonly dataDir: string;
  readonly configFile: string;
  readonly envFile: string;
  readonly tokenFile: string;
  readonly daemonState: string;
  /** Says that the engine's image was not there before, so that `--purge` removes it. */
  readonly imageMark: string;
}

export const ENGINE_IMAGE = "fairlead/demo-engine:1";

export function installationIn(dataDir: string): Installation {
  return {
    root: new URL("../..", import.meta.url).pathname,
    dataDir,
    configFile: join(dataDir, "config.yaml"),
    envFile: join(dataDir, "quickstart.env"),
    tokenFile: join(dataDir, "bootstrap-token"),
    daemonState: join(dataDir, "daemon"),
    imageMark: join(dataDir, "image-built"),
  };
}
