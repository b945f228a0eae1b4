import { join } from "node:path";

/** File locations of an installation. One data folder is one installation. */
export interface Installation {
  readonly root: string;
  readonly dataDir: string;
  readonly configFile: string;
  readonly envFile: string;
  /** Settings known so far; copied to the env file once everything works. */
  readonly stateFile: string;
  readonly tokenFile: string;
  readonly daemonState: string;
  /** Exists if this installation built the engine's image, so that `--purge` removes it. */
  readonly imageMark: string;
  /** Contains the path of the link `fairlead`, so that `--purge` removes it. */
  readonly commandMark: string;
}

export const ENGINE_IMAGE = "fairlead/demo-engine:1";

export function installationIn(dataDir: string): Installation {
  return {
    root: new URL("../..", import.meta.url).pathname,
    dataDir,
    configFile: join(dataDir, "config.yaml"),
    envFile: join(dataDir, "quickstart.env"),
    stateFile: join(dataDir, "quickstart.state"),
    tokenFile: join(dataDir, "bootstrap-token"),
    daemonState: join(dataDir, "daemon"),
    imageMark: join(dataDir, "image-built"),
    commandMark: join(dataDir, "command-link"),
  };
}
