/** Translates Docker's messages into actionable ones. Pure. */

interface Rule {
  readonly pattern: RegExp;
  /** Null if the pattern does not apply after all. */
  readonly words: (match: RegExpExecArray) => string | null;
}

/** For any response of the engine; the first match applies. */
const RULES: readonly Rule[] = [
  {
    pattern: /docker-init/,
    words: () => "Docker's init program (docker-init) is missing on this node; install it or set `init: false`",
  },
  {
    pattern: /executable file not found|: no such file or directory: unknown/,
    words: ({ input }) => withCommand(input, (command) => `the command "${command}" was not found in the image`),
  },
  {
    pattern: /: permission denied: unknown|: is a directory: unknown/,
    words: ({ input }) =>
      withCommand(input, (command) => `the image's command "${command}" cannot be executed: permission denied`),
  },
  {
    pattern: /exec format error/,
    words: () => "the image is built for a different processor architecture",
  },
  { pattern: /no command specified/i, words: () => "the image has no default command; set `command`" },
  {
    pattern: /could not select device driver "?nvidia"?/i,
    words: () => "Docker on this node cannot use GPUs; install the NVIDIA Container Toolkit",
  },
  { pattern: /no space left on device/, words: () => "the disk of this node is full" },
  {
    pattern: /resource temporarily unavailable|pthread_create failed/i,
    words: () => "process limit reached on this node: cannot start a new process",
  },
  { pattern: /no such image/i, words: () => "its image is no longer on this node" },
];

/** @returns Docker's original message if no pattern matches. */
export function engineWords(said: string): string {
  return wordsBy(RULES, said) ?? said;
}

export interface Pulled {
  /** With tag or digest. */
  readonly image: string;
  /** `registry.example.com:5000` */
  readonly registry: string;
  readonly withLogin: boolean;
}

/** A failed pull and Docker's message. */
export function pullWords(said: string, pulled: Pulled): string {
  return wordsBy(pullRules(pulled), said) ?? engineWords(said);
}

function pullRules({ image, registry, withLogin }: Pulled): readonly Rule[] {
  const login = withLogin ? "check the login in `registryAuthSecret`" : "it may need a login; set `registryAuthSecret`";
  const unreachable = `cannot reach the registry ${registry}`;
  return [
    {
      pattern: /toomanyrequests|too many requests|rate limit/i,
      words: () => `the rate limit of the registry ${registry} is reached`,
    },
    {
      // Registries do not distinguish missing from private repositories.
      pattern: /pull access denied|repository does not exist|insufficient_scope/i,
      words: () => `access to ${image} was denied: the repository does not exist, or ${login}`,
    },
    {
      pattern:
        /unauthorized|no basic auth credentials|authentication required|access forbidden|\bdenied\b|40[13] Forbidden/i,
      words: () => `the registry ${registry} denied access to ${image}; ${login}`,
    },
    {
      pattern: /no matching manifest for (\S{1,60})|does not match the specified platform/i,
      words: ([, platform]) =>
        `${image} is not available for this node's processor architecture${platform ? ` (${platform})` : ""}`,
    },
    {
      pattern: /manifest unknown|name unknown|repository name not known|: not found$/i,
      words: () => `${image} was not found in the registry ${registry}`,
    },
    {
      pattern: /no such host|name resolution|server misbehaving/i,
      words: () => `${unreachable}: cannot resolve its name`,
    },
    { pattern: /connection refused/i, words: () => `${unreachable}: connection refused` },
    {
      pattern: /i\/o timeout|timeout exceeded|deadline exceeded|request canceled|TLS handshake timeout/i,
      words: () => `${unreachable}: timeout`,
    },
    { pattern: /no route to host|network is unreachable/i, words: () => `${unreachable}: no route to host` },
    { pattern: /connection reset|\bEOF\b|broken pipe/, words: () => `${unreachable}: the connection was closed` },
    { pattern: /x509: /, words: () => `this node does not trust the certificate of the registry ${registry}` },
    {
      pattern: /HTTP response to HTTPS client/i,
      words: () => `the registry ${registry} uses plain HTTP, which Docker on this node does not allow`,
    },
    {
      pattern: /parsing HTTP \d{3} response body/i,
      words: () => `${registry} is not a container registry or does not have ${image}`,
    },
  ];
}

/** Null if the message is about a mount or a folder. */
function withCommand(said: string, words: (command: string) => string): string | null {
  const [, command = ""] = said.split('exec: "', 2);
  const [name = ""] = command.split('"', 1);
  return name === "" ? null : words(name.slice(0, 200));
}

function wordsBy(rules: readonly Rule[], said: string): string | null {
  for (const { pattern, words } of rules) {
    const match = pattern.exec(said);
    const own = match === null ? null : words(match);
    if (own !== null) return own;
  }
  return null;
}
