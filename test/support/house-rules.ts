import type { Rules } from "./source-rules.ts";

/**
 * The import rules of the house (design §3), each with the reason that is printed when it is broken.
 * An edge reads `<file> -> <target>`, or `<file> -type-> <target>` where only types are imported.
 */

const SERVER = "packages/control-plane/src";
const DAEMON = "packages/daemon/src";

/** Sees all parts and joins them; nothing else may. */
const COMPOSITION_ROOTS = `${SERVER}/(?:server|services|platform)|${SERVER}/admin/local-admin|${DAEMON}/daemon|${DAEMON}/node-parts|${DAEMON}/main|packages/cli/src/main`;

/** Rules files: the same input gives the same output, so they are tested without anything around them. */
const PURE_FILES = [
  `${SERVER}/(json-setting|agents/(agent|agent-lifecycle|agent-lifecycle-reference|agent-needs|agent-observation|agent-patch|agent-spec|connector-settings|connectors|guest-presets|placement)|nodes/(desired-daemon|node|node-patch|node-status|node-status-reference|plan-desired|plan-secrets|spec-hash|engine-presets|openclaw-start)|secrets/(secret|secret-key)|keys/(key|key-limits|key-secret)|billing/(budget|ledger|money|prices)|auth/credential-prefixes|builds/(daemon-build|install-script)|projects/project|providers/(alias|base-url-form|model-list|model-name|provider|provider-check|provider-config|provider-headers|provider-presets|provider-reference)|machines/(machine|machine-provider|provider-refused|user-data|hetzner-answers)|plans/(plan|hetzner-catalogue)|members/member|audit/(audit|audit-reference)|backup/(manifest|restore-review|tar)|one-time-links/one-time-link|users/user|sign-in/(sign-in|sign-in-config|password|oauth|oauth-forms)|inference/(byte-reader|call-scan|dialect|event-boundary|event-reader|json-skip|member-reader|notable-events|public-address|retry-rules|breaker|splice|submitted-body|token-usage)|inference/bridge/[\\w-]+|idempotency/(once|idempotency-key)|limits/(call-limits|minute-window)|answers/kept-answer|relay/relay-(headers|path)|usage/(usage|usage-batch)|chat/(acknowledgement|answer-closing|answer-items|answer-stored|chat-item|chat-message|chat-search|chat-session|chat-title|history-input|json-text|model-room|open-calls|told-response|turn-body|turn-input|turn-rules))`,
  `${DAEMON}/(cleanup/image-rules|host/(condition-rules|disk-rules)|reconcile/(plan|run-record|steps|workload-view)|runtime/(docker-spec|docker-user|ownership)|link/link-state|update/(trial-rules|update-plan|update-text))`,
].join("|");

const edge = (from: string, target: string): RegExp => new RegExp(`^${from} \\S+ ${target}$`);

export const houseRules: Rules = {
  imports: [
    {
      reason: "protocol is what both programs agree on: pure, with zod alone",
      forbids: edge("packages/protocol/\\S+", "(?!zod$|packages/protocol/).*"),
    },
    {
      reason: "wire is what both programs do with the bytes of a connection: it knows Node alone",
      forbids: edge("packages/wire/\\S+", "(?!node:|packages/wire/).*"),
    },
    {
      reason: "another package is reached by its name, which offers only what it exports",
      forbids: /^packages\/([^/]+)\/\S+ \S+ packages\/(?!\1\/)/,
    },
    {
      reason: "the daemon runs without the control plane: only the types of its router cross",
      forbids: edge(`${DAEMON}/\\S+`, "@fairlead/(?!(protocol|wire)/).*"),
      unless: / -type-> @fairlead\/control-plane\/daemon-router$/,
    },
    {
      reason: "the control plane runs without the daemon and the command line",
      forbids: edge(`${SERVER}/\\S+`, "@fairlead/(?!(protocol|wire)/).*"),
    },
    {
      reason: "the command line reaches daemons through the control plane",
      forbids: edge("packages/cli/\\S+", "@fairlead/daemon.*"),
    },
    {
      reason: "routes → service → store → db: routes call services alone",
      forbids: edge(`${SERVER}/\\S+-routes\\.ts`, "\\S+(-stores?\\.ts|/src/db/\\S+)"),
    },
    {
      reason: "routes → service → store → db: a service knows nothing of HTTP",
      forbids: edge(`${SERVER}/\\S+-services?\\.ts`, `(\\S+-routes\\.ts|${SERVER}/http/\\S+|fastify)`),
    },
    {
      reason: "routes → service → store → db: a store knows rows alone",
      forbids: edge(`${SERVER}/\\S+-stores?\\.ts`, "\\S+-(routes|services?)\\.ts"),
    },
    {
      reason: "http/, auth/ and db/ serve every resource, and so know none",
      forbids: edge(`${SERVER}/(http|auth|db)/\\S+`, `${SERVER}/(?!(http|auth|db)/)[^/]+/.*`),
    },
    {
      reason: "a resource calls another's service, never its store or routes",
      forbids: new RegExp(`^${SERVER}/([^/]+)/\\S+ \\S+ ${SERVER}/(?!\\1/)\\S+-(stores?|routes)\\.ts$`),
      unless: new RegExp(`^(${COMPOSITION_ROOTS})\\.ts `),
    },
    {
      reason: "a rules file is pure: it imports protocol, zod, pure helpers of Node and other rules files alone",
      forbids: edge(
        `(${PURE_FILES})\\.ts`,
        `(?!(zod|@fairlead/protocol/\\S+|node:crypto|node:util|node:zlib|(${PURE_FILES})\\.ts)$).*`,
      ),
      unless: / -type-> /,
    },
    {
      reason: "the reconcile loop knows the runtime port, not Docker",
      forbids: edge(`${DAEMON}/reconcile/\\S+`, `(dockerode|${DAEMON}/runtime/docker-\\S+)`),
    },
    {
      reason: "fixtures, fakes for tests and contract suites are for tests alone",
      forbids: edge("\\S+", "\\S+(/testing/\\S+|\\.(fixture|contract|test)\\.ts)"),
    },
    {
      reason: "the link knows nothing of containers",
      forbids: edge(`${DAEMON}/link/\\S+`, `${DAEMON}/runtime/\\S+`),
    },
  ],
  owners: [
    { package: "better-sqlite3", owners: /\/control-plane\/src\/db\// },
    { package: "kysely", owners: /\/control-plane\/src\/(db\/|\S+-stores?\.ts$)/, typesAnywhere: true },
    { package: "fastify", owners: /\/control-plane\/src\/(http\/|pages\/|\S+-(routes|route-schemas|request)\.ts$)/ },
    { package: "undici", owners: /\/control-plane\/src\/inference\// },
    // Types of the wire alone: nothing of a client library runs in the server.
    { package: "openai", owners: /^$/, typesAnywhere: true },
    {
      package: "jose",
      owners: /\/(control-plane\/src\/auth|daemon\/src\/(link|gateway|secrets))\//,
      typesAnywhere: true,
    },
    { package: "ws", owners: /\/src\/link\// },
    { package: "@trpc/server", owners: /\/control-plane\/src\/link\//, typesAnywhere: true },
    { package: "@trpc/client", owners: /\/daemon\/src\/link\// },
    { package: "dockerode", owners: /\/daemon\/src\/runtime\// },
    { package: "systeminformation", owners: /\/daemon\/src\/host\// },
    { package: "pino", owners: /\/src\/log\.ts$/, typesAnywhere: true },
    { package: "rate-limiter-flexible", owners: /\/control-plane\/src\/http\// },
    { package: "prom-client", owners: /\/control-plane\/src\/metrics\// },
    { package: "@opentelemetry/api", owners: /\/control-plane\/src\/traces\// },
    { package: "@opentelemetry/sdk-trace", owners: /\/control-plane\/src\/traces\// },
    { package: "@opentelemetry/resources", owners: /\/control-plane\/src\/traces\// },
    { package: "@opentelemetry/exporter-trace-otlp-http", owners: /\/control-plane\/src\/traces\// },
    { package: "yaml", owners: /\/(src\/config|cli\/src\/fields-file)\.ts$/ },
    { package: "commander", owners: /\/(cli\/src\/|daemon\/src\/main\.ts$)/ },
    { package: "eventsource-parser", owners: /\/cli\/src\/event-stream\.ts$/ },
    {
      package: "openid-client",
      owners:
        /\/(cli\/src\/sign-in\/(oauth-client|device-login|web-login)|control-plane\/src\/sign-in\/oidc-client)\.ts$/,
    },
    { package: "better-auth", owners: /\/control-plane\/src\/sign-in\/library\S*\.ts$/ },
    { package: "@better-auth/oauth-provider", owners: /\/control-plane\/src\/sign-in\/library-oauth\.ts$/ },
    { package: "@better-auth/kysely-adapter", owners: /\/control-plane\/src\/sign-in\/library-calls\.ts$/ },
    { package: "@node-rs/argon2", owners: /\/control-plane\/src\/sign-in\/password-hasher\.ts$/ },
    { package: "env-paths", owners: /\/cli\/src\/config\.ts$/ },
    { package: "@clack/prompts", owners: /\/cli\/src\/terminal\.ts$/ },
    { package: "cli-table3", owners: /\/cli\/src\/table\.ts$/ },
  ],
  texts: [
    {
      reason: "settings are read in one place: process.env belongs to config.ts",
      files: /^packages\//,
      unless: /\/src\/config\.ts$/,
      forbids: /\bprocess\.env\b/,
    },
    {
      reason: "time, ids and randomness come in as arguments: take a Clock or an IdSource",
      files: /^packages\//,
      // A log line's time is for people; nothing is decided by it.
      unless: new RegExp(`^(packages/protocol/src/(clock|ids)|packages/[^/]+/src/log|${COMPOSITION_ROOTS})\\.ts$`),
      forbids: /\bDate\.now\b|\bnew Date\(\)|\bperformance\.now\b|\bMath\.random\b|\brandomUUID/,
    },
    {
      reason: "a program logs through log.ts, and the command line prints through its terminal",
      files: /^(packages|scripts)\//,
      forbids: /\bconsole\.\w+\(/,
    },
  ],
};
