import { publicAddressProblem } from "@fairlead/hosting/public-url";
import { ANY_ORIGIN } from "@fairlead/inference/host/inference-cors";
import { DEFAULT_LIMITS } from "@fairlead/inference/host/limits";
import { z } from "zod";
import { serverLimitsSchema } from "../../access/limits/call-limits.ts";
import { connectorSettings } from "../../fleet/agents/definition/connector-settings.ts";
import { provisioningSettings } from "../../fleet/machines/provisioning/provisioning-settings.ts";
import { fleetSettings } from "../../fleet/nodes/observed/fleet-settings.ts";
import { isNetwork } from "../../http/limits/client-address.ts";
import { modelNameSchema } from "../../models/names/model-name.ts";
import { providerSettings } from "../../models/providers/provider-config.ts";
import { BILLING_MODES } from "../../money/billing/ledger.ts";
import { signInSettings } from "../../people/sign-in/sign-in-config.ts";
import { isPostgresUrl } from "../db/postgres/postgres-url.ts";
import { proxySettings } from "../outgoing/proxy-settings.ts";
import { LOG_LEVELS } from "../process/log.ts";

/** Every setting of the control plane. The parser, the variable names and `docs/config.md` are derived from it. */

const host = (what: string): z.ZodDefault<z.ZodString> =>
  z
    .string()
    .min(1)
    .default("127.0.0.1")
    .describe(`Listen address of the ${what}. \`0.0.0.0\` listens on all interfaces.`);
const port = (what: string, number: number): z.ZodDefault<z.ZodNumber> =>
  z.number().int().min(0).max(65_535).default(number).describe(`Listen port of the ${what}. 0 uses any free port.`);
const url = z
  .url({ protocol: /^https?$/, error: "must be an http or https URL" })
  .refine((text) => !text.endsWith("/"), {
    message: "must not end with a slash",
  });
const origin = z.string().regex(/^https?:\/\/[^/\s]+$/, "must be an origin such as https://chat.example.com");
const publicAddress = z
  .url({ protocol: /^https?$/, error: "must be an http or https URL" })
  .superRefine((text, context) => {
    const message = publicAddressProblem(text);
    if (message !== null) context.addIssue({ code: "custom", message });
  });
/** In the environment: one string with commas. */
const list = <T extends z.ZodType<string>>(item: T): z.ZodType<readonly string[], readonly string[] | string> =>
  z.preprocess(
    (value) => (typeof value === "string" ? value.split(",").map((part) => part.trim()) : value),
    z.array(item),
  );
/** IPv6 clients are counted per /64. */
const rate = (number: number, description: string): z.ZodDefault<z.ZodNumber> =>
  z.number().int().min(1).max(1_000_000).default(number).describe(description);
/** In the environment: a string. */
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
    .describe("Folder of the store and the admin socket. Created on the first start, accessible only to its owner."),
  masterKeyFile: z
    .string()
    .min(1)
    .optional()
    .describe(
      "File of the key that seals all secrets in the store, with mode 0600. Created on the first start. " +
        "Keep a copy elsewhere: backups do not contain it. Default: `master.key` in `dataDir`.",
    ),
  server: z
    .strictObject({
      platform: z.strictObject({ host: host("platform host"), port: port("platform host", 8080) }).prefault({}),
      inference: z.strictObject({ host: host("inference host"), port: port("inference host", 8081) }).prefault({}),
      publicUrl: publicAddress
        .optional()
        .describe(
          "URL at which users and nodes reach the platform host. It may have a path, which the reverse proxy removes from requests (see docs/operations.md). Default: derived from its host and port, which works only on this machine.",
        ),
      modelsUrl: publicAddress
        .optional()
        .describe("URL at which programs reach the inference host. Default: derived from its host and port."),
      trustedProxies: list(z.string().refine(isNetwork, "must be an IP address or a CIDR range such as 10.0.0.0/8"))
        .default([])
        .describe(
          "IP addresses or CIDR ranges of trusted reverse proxies. `X-Forwarded-For` is used, for the audit log and rate limits, " +
            "only on requests from these.",
        ),
      maxConnections: z
        .number()
        .int()
        .min(100)
        .max(1_000_000)
        .default(20_000)
        .describe(
          "Maximum number of open connections of both hosts together. Each needs a file descriptor (`LimitNOFILE` of the unit is 65,536), and each daemon uses two.",
        ),
      maxConnectionsPerAddress: z
        .number()
        .int()
        .min(10)
        .max(1_000_000)
        .default(2000)
        .describe(
          "Maximum number of open connections from one address (IPv6: per /64). Above it, connections that have not sent a request are closed, oldest first. " +
            "Links and tunnels of enrolled nodes are not counted, and `trustedProxies` are exempt.",
        ),
      tls: z
        .strictObject({
          certFile: z
            .string()
            .min(1)
            .describe(
              "PEM certificate chain for both hosts. Reloaded within ten seconds of a change. " +
                "Default: plain HTTP, for use behind a reverse proxy.",
            ),
          keyFile: z.string().min(1).describe("PEM file of the certificate's private key."),
        })
        .optional(),
      lameDuckSeconds: z
        .number()
        .int()
        .min(0)
        .max(600)
        .optional()
        .describe(
          "Seconds to keep serving after a stop is requested, while `/readyz` returns 503, so that load balancers redirect traffic first. " +
            "Default: 10 under systemd, otherwise 0.",
        ),
      shutdownSeconds: z
        .number()
        .int()
        .min(0)
        .max(3600)
        .default(30)
        .describe(
          "Seconds to wait for running requests to finish during shutdown. Five seconds later the process is terminated.",
        ),
    })
    .prefault({}),
  database: z
    .strictObject({
      url: z
        .string()
        .refine(isPostgresUrl, "must be a postgres:// URL")
        .optional()
        .describe(
          "A PostgreSQL database (15 or later) for the store, as `postgres://user:password@host/database`. Several hosts, separated by commas, are tried in turn until one accepts writes. Default: SQLite, one file in `dataDir`.",
        ),
      backupBeforeMigration: onUnlessSaid.describe(
        "Take a backup in `backups` of `dataDir` before a new version changes the store's schema. The newest three are kept.",
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
          "Folder with daemon builds that nodes install and update to: one folder per version, as created by `scripts/build-daemon`. " +
            "Default: `daemon-builds` in `dataDir`. Builds that are shipped with the control plane are also available.",
        ),
    })
    .prefault({}),
  log: z
    .strictObject({
      level: z
        .enum(LOG_LEVELS)
        .default("info")
        .describe("Minimum level of log messages, which are written to stdout as JSON lines."),
    })
    .prefault({}),
  signIn: signInSettings,
  rateLimits: z
    .strictObject({
      signInsPerAddress: rate(
        60,
        "Failed sign-ins per address in 15 minutes. The same limit applies to unreadable form submissions.",
      ),
      signInsPerAddressAndAccount: rate(10, "Failed sign-ins per address and account in 15 minutes."),
      signInsPerAccount: rate(
        100,
        "Failed sign-ins per account in an hour, from all addresses where the user has not signed in before.",
      ),
      linksPerAddress: rate(30, "Failed uses of one-time links per address in 15 minutes."),
      daemonsPerAddress: rate(120, "Failed enrollments and token renewals of one node per address and minute."),
      upgradesPerAddress: rate(
        120,
        "Failed upgrades (daemon links, tunnels, WebSockets to workloads) per address and minute. Valid credentials are never counted.",
      ),
      oauthCallsPerAddress: rate(300, "Calls of the OAuth token and device routes per address and minute."),
      deviceCodesPerAddress: rate(60, "Device codes requested per address in ten minutes."),
      deviceCodeTriesPerUser: rate(20, "Invalid device codes entered or opened per user in 15 minutes."),
      invitationsPerUser: rate(100, "Invitations created per user in an hour."),
    })
    .prefault({}),
  limits: z.strictObject({ project: serverLimitsSchema }).prefault({}),
  billing: z
    .strictObject({
      mode: z
        .enum(BILLING_MODES)
        .default("off")
        .describe(
          "`prepaid`: calls require sufficient balance in their project, and models without a price cannot be called. " +
            "`off`: calls are free.",
        ),
    })
    .prefault({}),
  telemetry: z
    .strictObject({
      otlpEndpoint: url
        .optional()
        .describe(
          "OTLP/HTTP collector that receives traces of calls, such as `http://localhost:4318`. Traces contain no content. Default: tracing is off.",
        ),
    })
    .prefault({}),
  metrics: z
    .strictObject({
      tokenFile: z
        .string()
        .min(1)
        .optional()
        .describe(
          "File of a token that allows scrapers on other machines to read `/metrics`, as `Authorization: Bearer`. At least 16 characters, " +
            "and not readable by all users. A replaced file is used within five seconds. Default: no such token.",
        ),
    })
    .prefault({}),
  retention: z
    .strictObject({
      auditDays: days.default(365).describe("Days to keep the audit log."),
      nodeEventDays: days.default(90).describe("Days to keep the events of nodes and agents."),
      nodeEventRows: z
        .number()
        .int()
        .min(100)
        .max(1_000_000)
        .default(10_000)
        .describe(
          "Maximum number of events that one node's reports may add to its history, and again to the histories of its agents. Newer ones are dropped, " +
            "and an event records how many. Events caused by users are always kept.",
        ),
      usageDays: days.default(90).describe("Days to keep the records of individual calls: their usage and cost."),
      chatDays: days.optional().describe("Days to keep a chat session after its last activity. Default: forever."),
      usageSumsDays: days.default(1095).describe("Days to keep hourly usage totals."),
    })
    .prefault({}),
  chat: z
    .strictObject({
      onLeave: z
        .enum(["cancel", "continue"])
        .default("cancel")
        .describe(
          "What happens when the client disconnects during a response. `cancel` stops the model and keeps the partial response; " +
            "`continue` finishes and keeps all of it.",
        ),
      allowedOrigins: list(origin)
        .default([])
        .describe(
          "Origins of web pages that may call `/v1/chat` of this host from a browser, such as `https://chat.example.com`.",
        ),
    })
    .prefault({}),
  fleet: fleetSettings,
  provisioning: provisioningSettings,
  providers: providerSettings,
  proxy: proxySettings,
  connectors: connectorSettings,
  inference: z
    .strictObject({
      defaultModel: modelNameSchema
        .optional()
        .describe("Model for calls that do not name one, unless their project sets a default."),
      allowedOrigins: list(z.union([z.literal(ANY_ORIGIN), origin]))
        .default([])
        .describe(
          "Origins of web pages that may call the inference host from a browser, such as `https://chat.example.com`. `*` allows every page. " +
            "A page that calls it contains a project key, which is visible to everyone who can open the page.",
        ),
      maxBodyBytes: bytes
        .max(1_073_741_824)
        .default(DEFAULT_LIMITS.maxBodyBytes)
        .describe("Maximum size of a request body, after decompression. Larger bodies return 413."),
      maxCallsInFlight: z
        .number()
        .int()
        .min(1)
        .max(1_000_000)
        .default(DEFAULT_LIMITS.maxCallsInFlight)
        .describe("Maximum number of concurrent calls. Further calls return 503 immediately."),
      ownerShare: z
        .number()
        .min(0.1)
        .max(1)
        .default(DEFAULT_LIMITS.ownerShare)
        .describe(
          "Share of `maxCallsInFlight` and `maxBufferedBytes` that all projects of one owner may use together while no other owner " +
            "needs any. Several owners get equal parts, and one part is kept free for the next owner. 1: no separation of owners.",
        ),
      maxAttempts: z
        .number()
        .int()
        .min(1)
        .max(20)
        .default(DEFAULT_LIMITS.maxAttempts)
        .describe("Maximum number of attempts per call, as long as nothing was sent to the client. 1: no retries."),
      maxRetryWaitSeconds: z
        .number()
        .min(0)
        .max(60)
        .default(DEFAULT_LIMITS.maxRetryWaitMs / 1000)
        .describe(
          "Maximum total wait before retries of a call. If an upstream requests a longer wait, its error is returned immediately.",
        ),
      maxBufferedBytes: bytes
        .default(DEFAULT_LIMITS.maxBufferedBytes)
        .describe(
          "Maximum number of bytes of bodies in memory, across all calls, counted as they arrive. Above it, calls return 503.",
        ),
      minUploadBytesPerSecond: z
        .number()
        .int()
        .min(0)
        .max(1_048_576)
        .default(DEFAULT_LIMITS.minUploadBytesPerSecond)
        .describe(
          "Minimum average upload rate of a body over any ten seconds in which the server reads it. Slower uploads return 408. " +
            "It applies to both hosts. 0: no minimum.",
        ),
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
  /** "" if the description explains the default. */
  readonly defaultText: string;
  readonly description: string;
}

/** All settings, in schema order. */
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
