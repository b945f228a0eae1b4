import { COMPOSITION_FILES } from "./layout-rules.ts";
import type { Rules } from "./source-rules.ts";

/**
 * The import rules of the house (decisions/0002), each with the reason that is printed when it is broken.
 * An edge reads `<file> -> <target>`, or `<file> -type-> <target>` where only types are imported.
 */

const SERVER = "packages/control-plane/src";
const INFERENCE = "packages/inference/src";
const DAEMON = "packages/daemon/src";

/** Sees all parts and joins them; nothing else may. */
const COMPOSITION_ROOTS = `${COMPOSITION_FILES}|${SERVER}/installation/admin/local-admin|${DAEMON}/(daemon|node-parts|main)|packages/cli/src/main`;

/** Where everything may touch the world: programs, the ways in and out, and what Fairlead does to its own machine. */
const IMPURE_PLACES = [
  "packages/(?:cli|demo-agent|wire|hosting)/\\S+",
  // The daemon acts on its machine; its plans and rules do not.
  `${DAEMON}/(?!reconcile/plan/|runtime/ownership|\\S+-rules\\.ts)\\S+`,
  `${SERVER}/(?:installation|http|telemetry/(?:metrics|traces)|people/(?:sign-in|pages))/\\S+`,
  `${SERVER}/[^/]+`,
  `${INFERENCE}/(?:host|upstreams)/\\S+`,
].join("|");

/** The last word of a file's name that says that it has effects or state of the world. */
const IMPURE_NAMES =
  "services?|stores?|routes|schemas|hub|server|worker|socket|retention|sweep|sweeper|runner|watch|runtime|cache|client|api|logs?|limits|guard|clock|ids|rates?|upgrades|fetch|machines|engine|directory|discovery|relay|log|stream";

/** Files with other names that are not pure, and why. */
const IMPURE_FILES = [
  // They await what a port does, and map what it throws.
  `${INFERENCE}/calls/pipeline`,
  `${SERVER}/chat/(?:chat-cors|store/turn-(?:begin|removal)|sessions/chat-request|turns/http-audience)`,
  // What is remembered of credentials.
  `${SERVER}/access/auth/credentials`,
  // Signatures and sealing are jose's; the master key is a file.
  `${SERVER}/access/auth/(?:sealing/(?:key-ring|node-sealing|(?:open-)?master-key)|tokens/(?:tokens|node-assertion))`,
  // Rows, read or written behind.
  `${SERVER}/money/(?:usage/usage-recorder|billing/ledger-check)`,
  `${SERVER}/access/keys/(?:key|key-use|key-check)`,
  `${SERVER}/fleet/(?:agents/life/agent-planner|nodes/(?:records/node-identities|agents/(?:node-agent-hosts|agent-stop-wait)|secrets/node-secret-owners))`,
  `${SERVER}/models/names/project-names`,
  // Names are resolved before an address is trusted.
  `${SERVER}/models/(?:catalog/model-(?:candidates|catalog)|providers/base-url)`,
  // Streams.
  `${SERVER}/fleet/(?:nodes/desired/log-formats|tunnel/(?:answer-length|yamux-tunnel|yamux-tunnel-call)|link/daemon-router|workload-gateway/relay-call|machines/docker/docker-machine-spec)`,
].join("|");

/** A pure file, by its place and name: the same input gives the same output, so it is tested without anything around it. */
const PURE = `(?!(?:${IMPURE_PLACES}|${IMPURE_FILES}|${COMPOSITION_ROOTS})\\.ts|(?!packages/dialects/)\\S*[/-](?:${IMPURE_NAMES})\\.ts)packages/(?:control-plane|daemon|dialects|inference|protocol)/src/\\S+\\.ts`;

/** Data structures and helpers without effects. */
const STRUCTURES =
  "@fairlead/wire/growing-buffer|@fairlead/hosting/(?:growing-cache|distribution|public-url|requests/bearer|errors/\\S+)|lru-cache";

/** Files whose JSON nobody outside of the process has written, by where it comes from. */
const OWN_JSON = [
  // The parser itself.
  "packages/dialects/src/json/exact-json",
  // Rows of the store, and what is kept like rows.
  `${SERVER}/\\S+-stores?`,
  `(${INFERENCE}/(ports/kept-answer|routing/recent-items)|${SERVER}/access/(idempotency/idempotency-service|keys/key-limits))`,
  // Sealed by this server.
  `${SERVER}/(access/auth/sealing/key-ring|people/sign-in/oidc/oidc-service)`,
  // Written by this process a moment ago.
  `${SERVER}/fleet/nodes/desired/node-planner`,
  // Answers of the sign-in library, which runs in this process.
  `${SERVER}/people/sign-in/oauth/oauth-(answer|service|token-service)`,
  // The operator's settings.
  `${SERVER}/people/sign-in/sign-in-config`,
  // A program that runs in an agent's container.
  `${SERVER}/fleet/nodes/desired/openclaw-start`,
  // The daemon's own files.
  `${DAEMON}/state/durable-record`,
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
      forbids: edge(`${SERVER}/\\S+`, "@fairlead/(?!(protocol|wire|dialects|hosting|inference)/).*"),
    },
    {
      reason: "dialects are bytes and values: protocol, zod and buffers alone",
      forbids: edge(
        "packages/dialects/\\S+",
        "(?!zod$|node:(crypto|util|zlib)$|@fairlead/(protocol|wire)/|packages/dialects/).*",
      ),
      unless: / -type-> openai\//,
    },
    {
      reason: "hosting is what both hosts do with a request: it knows neither of them",
      forbids: edge("packages/hosting/\\S+", "@fairlead/(?!(protocol|wire)/).*"),
    },
    {
      reason: "inference reaches the rest of the control plane through its ports",
      forbids: edge(`${INFERENCE}/\\S+`, "@fairlead/(?!(protocol|wire|dialects|hosting)/).*"),
    },
    {
      reason: "the command line reaches daemons through the control plane",
      forbids: edge("packages/cli/\\S+", "@fairlead/daemon.*"),
    },
    {
      reason: "routes → service → store → db: routes call services alone",
      forbids: edge(`${SERVER}/\\S+-routes\\.ts`, "\\S+(-stores?\\.ts|/installation/db/\\S+)"),
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
      forbids: edge(
        `${SERVER}/(http|access/auth|installation/db)/\\S+`,
        `${SERVER}/(?!http/|access/auth/|installation/(db|process)/|telemetry/bounds/)\\S+`,
      ),
      unless: new RegExp(`^(${COMPOSITION_ROOTS})\\.ts `),
    },
    {
      reason: "only the composition opens rooms: other files take what they need as parameters",
      forbids: edge(`${SERVER}/\\S+`, `(?:${COMPOSITION_FILES})\\.ts`),
      unless: new RegExp(`^(${COMPOSITION_ROOTS})\\.ts `),
    },
    {
      reason:
        "a room calls another's service, never its store or routes; chat and models keep one store for their rooms",
      forbids: new RegExp(
        `^${SERVER}/(chat|models|[^/]+/[^/]+)/\\S+ \\S+ ${SERVER}/(?!\\1/)\\S+-(stores?|routes)\\.ts$`,
      ),
      unless: new RegExp(
        `^(${COMPOSITION_ROOTS})\\.ts |^${SERVER}/(?<wing>chat|models)/\\S+ \\S+ ${SERVER}/\\k<wing>/`,
      ),
    },
    {
      reason: "pure by place and name: protocol, dialects, zod, pure helpers of Node and other pure files alone",
      forbids: edge(
        PURE,
        `(?!(?:zod|@fairlead/(?:protocol|dialects|inference)/\\S+|node:(?:crypto|util|zlib|path|url)|${STRUCTURES}|${PURE})$).*`,
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
    { package: "better-sqlite3", owners: /\/control-plane\/src\/installation\/db\// },
    { package: "kysely", owners: /\/control-plane\/src\/(installation\/db\/|\S+-stores?\.ts$)/, typesAnywhere: true },
    {
      package: "fastify",
      owners: /\/control-plane\/src\/(http\/|people\/pages\/|\S+-(routes|route-schemas|request)\.ts$)/,
    },
    {
      package: "undici",
      owners:
        /\/(inference\/src\/upstreams\/|control-plane\/src\/installation\/outgoing\/|cli\/src\/platform\/proxy-fetch\.ts$)/,
    },
    // Types of the wire alone: nothing of a client library runs in the server.
    { package: "openai", owners: /^$/, typesAnywhere: true },
    {
      package: "jose",
      owners: /\/(control-plane\/src\/access\/auth|daemon\/src\/(link|gateway|secrets))\//,
      typesAnywhere: true,
    },
    { package: "ws", owners: /\/src\/(fleet\/)?link\// },
    { package: "@trpc/server", owners: /\/control-plane\/src\/fleet\/link\//, typesAnywhere: true },
    { package: "@trpc/client", owners: /\/daemon\/src\/link\// },
    { package: "dockerode", owners: /\/daemon\/src\/runtime\// },
    { package: "systeminformation", owners: /\/daemon\/src\/host\// },
    { package: "pino", owners: /\/src\/(installation\/)?process\/log\.ts$/, typesAnywhere: true },
    { package: "rate-limiter-flexible", owners: /\/control-plane\/src\/http\// },
    { package: "prom-client", owners: /\/control-plane\/src\/telemetry\/metrics\// },
    { package: "@opentelemetry/api", owners: /\/control-plane\/src\/telemetry\/traces\// },
    { package: "@opentelemetry/sdk-trace", owners: /\/control-plane\/src\/telemetry\/traces\// },
    { package: "@opentelemetry/resources", owners: /\/control-plane\/src\/telemetry\/traces\// },
    { package: "@opentelemetry/exporter-trace-otlp-http", owners: /\/control-plane\/src\/telemetry\/traces\// },
    { package: "yaml", owners: /\/(src\/((installation\/config|process)\/)?config|cli\/src\/input\/fields-file)\.ts$/ },
    { package: "commander", owners: /\/(cli\/src\/|daemon\/src\/main\.ts$)/ },
    { package: "eventsource-parser", owners: /\/cli\/src\/terminal\/event-stream\.ts$/ },
    {
      package: "openid-client",
      owners:
        /\/(cli\/src\/sign-in\/(oauth-client|device-login|web-login)|control-plane\/src\/people\/sign-in\/oidc\/oidc-client)\.ts$/,
    },
    { package: "better-auth", owners: /\/control-plane\/src\/people\/sign-in\/library\/\S+\.ts$/ },
    {
      package: "@better-auth/oauth-provider",
      owners: /\/control-plane\/src\/people\/sign-in\/library\/library-oauth\.ts$/,
    },
    {
      package: "@better-auth/kysely-adapter",
      owners: /\/control-plane\/src\/people\/sign-in\/library\/library-calls\.ts$/,
    },
    { package: "@node-rs/argon2", owners: /\/control-plane\/src\/people\/sign-in\/password-hasher\.ts$/ },
    { package: "env-paths", owners: /\/cli\/src\/config\.ts$/ },
    { package: "@clack/prompts", owners: /\/cli\/src\/terminal\/terminal\.ts$/ },
    { package: "cli-table3", owners: /\/cli\/src\/terminal\/table\.ts$/ },
  ],
  texts: [
    {
      reason: "settings are read in one place: process.env belongs to config.ts",
      files: /^packages\//,
      unless: /\/src\/((installation\/config|process)\/)?config\.ts$/,
      forbids: /\bprocess\.env\b/,
    },
    {
      reason: "time, ids and randomness come in as arguments: take a Clock or an IdSource",
      files: /^packages\//,
      // A log line's time is for people; nothing is decided by it. No clock can be passed to another thread.
      unless: new RegExp(
        `^(packages/protocol/src/values/(clock|ids)|packages/\\S+/process/log|${SERVER}/installation/stop/stop-watch-worker|${COMPOSITION_ROOTS})\\.ts$`,
      ),
      forbids: /\bDate\.now\b|\bnew Date\(\)|\bperformance\.now\b|\bMath\.random\b|\brandomUUID/,
    },
    {
      reason: "JSON from outside is parsed by parseJson or parseExact, which bound what it may cost",
      files: new RegExp(`^(${SERVER}|${INFERENCE}|packages/(dialects|hosting)/src|${DAEMON})/`),
      unless: new RegExp(`(${OWN_JSON})\\.ts$|\\.(test|fixture|contract)\\.ts$|/testing/`),
      forbids: /\bJSON\.parse\(|\.json\(\)/,
    },
    {
      reason: "a program logs through log.ts, and the command line prints through its terminal",
      files: /^(packages|scripts)\//,
      forbids: /\bconsole\.\w+\(/,
    },
  ],
};
