import { z } from "zod";

/** Environment of an agent, see `docs/agents.md`. */
const environmentSchema = z.object({
  OPENAI_BASE_URL: z.url(),
  FAIRLEAD_TOKEN_FILE: z.string().min(1),
  FAIRLEAD_AGENT_ID: z.string().min(1),
  PORT: z.coerce.number().int().min(0).max(65_535),
  /** Default model; if omitted, the project's first. */
  FAIRLEAD_MODEL: z.string().min(1).optional(),
});

/** Folder of a connector's secrets, unless they are variables. */
const SECRETS_FOLDER = "/run/secrets";

export interface DemoAgentConfig {
  /** URL of the inference host, including `/v1`. */
  readonly baseUrl: string;
  readonly tokenFile: string;
  readonly agentId: string;
  readonly port: number;
  readonly model: string | null;
  /** A secret from a variable, or null. */
  readonly variable: (name: string) => string | null;
  readonly secretsFolder: string;
}

/** @throws Error that lists missing and invalid variables. */
export function readDemoAgentConfig(environment: NodeJS.ProcessEnv = process.env): DemoAgentConfig {
  const parsed = environmentSchema.safeParse(environment);
  if (!parsed.success) throw new Error(`Invalid environment:\n${z.prettifyError(parsed.error)}`);
  const { data } = parsed;
  return {
    baseUrl: data.OPENAI_BASE_URL.replace(/\/+$/, ""),
    tokenFile: data.FAIRLEAD_TOKEN_FILE,
    agentId: data.FAIRLEAD_AGENT_ID,
    port: data.PORT,
    model: data.FAIRLEAD_MODEL ?? null,
    variable: (name) => environment[name] || null,
    secretsFolder: SECRETS_FOLDER,
  };
}
