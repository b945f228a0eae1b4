import { type PortRequest, reservePort, urlOf } from "./listen.ts";

export interface Addresses {
  readonly platform: PortRequest;
  readonly inference: PortRequest;
  /** Where the hosts listen. Clients are given `publicUrl` and `modelsUrl`. */
  readonly platformUrl: string;
  readonly inferenceUrl: string;
  readonly publicUrl: string;
  readonly modelsUrl: string;
}

interface Listening {
  readonly platform: Omit<PortRequest, "setting">;
  readonly inference: Omit<PortRequest, "setting">;
  readonly tls?: object | undefined;
  /** What clients are given, where that is not where the hosts listen. */
  readonly publicUrl: string | null;
  readonly modelsUrl: string | null;
}

/** Called before the store is opened: a taken port must not cost a migration, and services need the URLs. @throws StartError */
export async function findAddresses(server: Listening): Promise<Addresses> {
  const platform = { ...server.platform, setting: "server.platform.port" };
  const inference = { ...server.inference, setting: "server.inference.port" };
  const first = await reservePort(platform);
  try {
    const second = await reservePort(inference);
    await second.release();
    const scheme = server.tls === undefined ? "http" : "https";
    const platformUrl = urlOf(platform.host, first.port, scheme);
    const inferenceUrl = urlOf(inference.host, second.port, scheme);
    return {
      platform: { ...platform, port: first.port },
      inference: { ...inference, port: second.port },
      platformUrl,
      inferenceUrl,
      publicUrl: server.publicUrl ?? platformUrl,
      modelsUrl: server.modelsUrl ?? inferenceUrl,
    };
  } finally {
    await first.release();
  }
}
