import { z } from "zod";
import { connectorSettings } from "./agents/connector-settings.ts";
import { BILLING_MODES } from "./billing/ledger.ts";
import { isNetwork } from "./http/client-address.ts";
import { DEFAULT_LIMITS } from "./inference/limits.ts";
import { serverLimitsSchema } from "./limits/call-limits.ts";
import { LOG_LEVELS } from "./log.ts";
import { provisioningSettings } from "./machines/provisioning-settings.ts";
import { fleetSettings } from "./nodes/fleet-settings.ts";
import { modelNameSchema } from "./providers/model-name.ts";
import { providerSettings } from "./providers/provider-config.ts";
import { signInSettings } from "./sign-in/sign-in-config.ts";

/** Every setting of the control plane, once: the parser, the environment's names and `docs/config.md` all come from here. */

const host = (what: string): z.ZodDefault<z.ZodString> =>
  z.string().min(1).default("127.0.0.1").describe(`Address that the ${what} listens on; \`0.0.0.0\` for every one.`);
const port = (what: string, number: number): z.ZodDefault<z.ZodNumber> =>
  z.number().int().min(0).max(65_535).default(number).describe(`Port of the ${what}; 0 takes any free one.`);
const url = z
  .url({ protocol: /^https?$/, error: "must be an http or https URL" })
  .refine((text) => !text.endsWith("/"), {
    message: "must not end with a slash",
  });
/** From the environment it comes as one text with commas. */
const list = <T extends z.ZodType<string>>(item: T): z.ZodType<readonly string[], readonly string[] | string> =>
  z.preprocess(
    (value) => (typeof value === "string" ? value.split(",").map((part) => part.trim()) : value),
    z.array(item),
  );
/** An IPv6 client is counted by its /64. */
const rate = (number: number, description: string): z.ZodDefault<z.ZodNumber> =>
  z.number().int().min(1).max(1_000_000).default(number).describe(description);
/** From the environment it comes as a text. */
const onUnlessSaid = z
  .preprocess((value) => (value === "true" ? true : value === "false" ? false : value), z.boolean())
  .default(true);
const bytes = z.number().int().min(1024);
const days = z.number().int().min(1).max(36_500);

export const configSchema = z.strictObject({
  dataDir: z
    .string()
    .min(1)
    .default("fairlead-data")
    .describe("Folder of the store and the admin socket; made on the first start, for its owner only."),
  masterKeyFile: z
    .string()
    .min(1)
    .optional()
    .describe(
      "File of the key that seals all secrets in the store, mode 0600; made on the first start. " +
        "Keep a copy elsewhere: backups do not hold it. Default: `master.key` in `dataDir`.",
    ),
  server: z
    .strictObject({
      platform: z.strictObject({ host: host("platform host"), port: port("platform host", 8080) }).prefault({}),
      inference: z.strictObject({ host: host("inference host"), port: port("inference host", 8081) }).prefault({}),
      publicUrl: url
        .optional()
        .describe(
          "Address of the platform host as people and nodes reach it. Default: made of its host and port, which only this machine can use.",
        ),
      modelsUrl: url
        .optional()
        .describe("Address of the inference host as programs reach it. Default: made of its host and port."),
      trustedProxies: list(z.string().refine(isNetwork, "must be an IP address or a network such as 10.0.0.0/8"))
        .default([])
        .describe(
          "Reverse proxies in front of the platform host, as addresses or networks. Only what they say in `X-Forwarded-For` is " +
            "taken for a client's address, in the audit log and in rate limits.",
        ),
      tls: z
        .strictObject({
          certFile: z
            .string()
            .min(1)
            .describe(
              "PEM file of the certificate that both hosts show, with its chain. Replaced files are taken within ten seconds, without a restart. " +
                "Default: plain http, for a reverse proxy in front.",
            ),
          keyFile: z.string().min(1).describe("PEM file of its private key."),
        })
        .optional(),
      shutdownSeconds: z
        .number()
        .int()
        .min(0)
        .max(3600)
        .default(30)
        .describe("How long running calls may go on after the server was told to stop."),
    })
    .prefault({}),
  database: z
    .strictObject({
      url: z
        .url({ protocol: /^postgres(ql)?$/, error: "must be a postgres:// URL" })
        .optional()
        .describe(
          "A PostgreSQL (15 or later) for the store, as `postgres://user:password@host/database`. Default: SQLite, one file in `dataDir`.",
        ),
      backupBeforeMigration: onUnlessSaid.describe(
        "Whether a new version takes a backup into `backups` of `dataDir` before it changes the store's schema; the newest three are kept.",
      ),
    })
    .prefault({}),
  builds: z
    .strictObject({
      dir: z
        .string()
        .min(1)
        .optional()
        .describe(
          "Folder with builds of the daemon, which nodes install and update to: one folder for each version, as `scripts/build-daemon` " +
            "makes them. Default: `daemon-builds` in `dataDir`. Those that came with the control plane are offered as well.",
        ),
    })
    .prefault({}),
  log: z
    .strictObject({
      level: z
        .enum(LOG_LEVELS)
        .default("info")
        .describe("Least level that is logged, as JSON lines on standard output."),
    })
    .prefault({}),
  signIn: signInSettings,
  rateLimits: z
    .strictObject({
      signInsPerAddress: rate(60, "Failed sign-ins from one address within 15 minutes."),
      signInsPerAddressAndAccount: rate(10, "Failed sign-ins from one address for one account within 15 minutes."),
      signInsPerAccount: rate(
        100,
        "Failed sign-ins for one account within an hour, from all addresses where its person has not signed in before.",
      ),
      linksPerAddress: rate(30, "Failed uses of one-time links from one address within 15 minutes."),
      daemonsPerAddress: rate(120, "Failed enrolments and token renewals from one address within a minute."),
      oauthCallsPerAddress: rate(300, "Calls of the OAuth token and device routes from one address within a minute."),
      invitationsPerUser: rate(100, "Invitations that one person makes within an hour."),
    })
    .prefault({}),
  limits: z.strictObject({ project: serverLimitsSchema }).prefault({}),
  billing: z
    .strictObject({
      mode: z
        .enum(BILLING_MODES)
        .default("off")
        .describe(
          "`prepaid`: no call without the money for it in its project's balance, and none of a model without a price. " +
            "`off`: nothing is asked for.",
        ),
    })
    .prefault({}),
  telemetry: z
    .strictObject({
      otlpEndpoint: url
        .optional()
        .describe(
          "A collector that takes traces of calls by OTLP over HTTP, as `http://localhost:4318`; they hold no content. Default: nothing is traced.",
        ),
    })
    .prefault({}),
  retention: z
    .strictObject({
      auditDays: days.default(365).describe("How many days the audit log is kept."),
      nodeEventDays: days
        .default(90)
        .describe("How many days the histories of nodes and of agents are kept: what happened to them, and when."),
      usageDays: days
        .default(90)
        .describe("How many days the records of single calls are kept: what they used, and their cost."),
      chatDays: days
        .optional()
        .describe("How many days a chat session is kept in which nothing is said any more. Default: for ever."),
      usageSumsDays: days.default(1095).describe("How many days the hourly sums of what calls used are kept."),
    })
    .prefault({}),
  chat: z
    .strictObject({
      onLeave: z
        .enum(["cancel", "continue"])
        .default("cancel")
        .describe(
          "What becomes of an answer whose reader leaves. `cancel`: the model is stopped, and what it said so far is kept. " +
            "`continue`: it goes on to its end, and all of it is kept.",
        ),
      allowedOrigins: list(
        z.string().regex(/^https?:\/\/[^/\s]+$/, "must be an origin such as https://chat.example.com"),
      )
        .default([])
        .describe(
          "Origins of web pages that may call `/v1/chat` of this host from a browser, as `https://chat.example.com`.",
        ),
    })
    .prefault({}),
  fleet: fleetSettings,
  provisioning: provisioningSettings,
  providers: providerSettings,
  connectors: connectorSettings,
  inference: z
    .strictObject({
      defaultModel: modelNameSchema
        .optional()
        .describe("The model that calls are for which name none, where their project says nothing else."),
      maxBodyBytes: bytes
        .max(1_073_741_824)
        .default(DEFAULT_LIMITS.maxBodyBytes)
        .describe("Largest body of one call, decompressed; a larger one is answered 413."),
      maxCallsInFlight: z
        .number()
        .int()
        .min(1)
        .max(1_000_000)
        .default(DEFAULT_LIMITS.maxCallsInFlight)
        .describe("Calls at the same time; one more is answered 503 at once."),
      maxAttempts: z
        .number()
        .int()
        .min(1)
        .max(20)
        .default(DEFAULT_LIMITS.maxAttempts)
        .describe("How often one call is sent to upstreams at most, as long as nothing was answered; 1: no retries."),
      maxRetryWaitSeconds: z
        .number()
        .min(0)
        .max(60)
        .default(DEFAULT_LIMITS.maxRetryWaitMs / 1000)
        .describe(
          "How long one call waits in all to be sent again; an upstream that asks for longer is believed at once.",
        ),
      maxBufferedBytes: bytes
        .default(DEFAULT_LIMITS.maxBufferedBytes)
        .describe("Bodies in memory at the same time, all calls together; beyond it calls are answered 503."),
    })
    .prefault({}),
});

export type ConfigInput = z.output<typeof configSchema>;

export interface Setting {
  /** `["server", "platform", "port"]` */
  readonly path: readonly string[];
  /** `FAIRLEAD_SERVER_PLATFORM_PORT` */
  readonly env: string;
  readonly isNumber: boolean;
  /** "" where the description says what it is made of. */
  readonly defaultText: string;
  readonly description: string;
}

/** All settings, in the schema's order. */
export function listSettings(): readonly Setting[] {
  return settingsOf(configSchema, []);
}

function settingsOf(schema: z.ZodType, path: readonly string[]): readonly Setting[] {
  const inner = unwrap(schema);
  if (inner instanceof z.ZodObject) {
    const fields = Object.entries(inner.shape as Record<string, z.ZodType>);
    return fields.flatMap(([name, field]) => settingsOf(field, [...path, name]));
  }
  return [
    {
      path,
      env: envName(path),
      isNumber: inner instanceof z.ZodNumber,
      defaultText: schema instanceof z.ZodDefault ? z.coerce.string().parse(schema.def.defaultValue) : "",
      description: schema.description ?? "",
    },
  ];
}

function unwrap(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault || schema instanceof z.ZodOptional) {
    return unwrap(schema.unwrap() as z.ZodType);
  }
  return schema;
}

function envName(path: readonly string[]): string {
  const words = path.map((part) => part.replaceAll(/[A-Z]/g, (capital) => `_${capital}`).toUpperCase());
  return ["FAIRLEAD", ...words].join("_");
}
