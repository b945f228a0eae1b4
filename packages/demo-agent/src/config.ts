import { z } from "zod";

/** What the platform tells an agent: `docs/agents.md` lists it. */
const environmentSchema = z.object({
  OPENAI_BASE_URL: z.url(),
  FAIRLEAD_TOKEN_FILE: z.string().min(1),
  FAIRLEAD_AGENT_ID: z.string().min(1),
  PORT: z.coerce.number().int().min(0).max(65_535),
  /** The model for tasks that name none. Left out: the project's first. */
  FAIRLEAD_MODEL: z.string().min(1).optional(),
});

/** Where a connector's secrets are files unless it gives them as variables. */
const SECRETS_FOLDER = "/run/secrets";

export interface Config {
  /** Of the inference host, with `/v1`. */
  readonly baseUrl: string;
  readonly tokenFile: string;
  readonly agentId: string;
  readonly port: number;
  readonly model: string | null;
  /** A secret as a variable. Null: it may be a file. */
  readonly variable: (name: string) => string | null;
  readonly secretsFolder: string;
}

/** @throws Error that names what is missing or wrong. */
export function readConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const parsed = environmentSchema.safeParse(environment);
  if (!parsed.success) throw new Error(`The environment is not that of an agent:\n${z.prettifyError(parsed.error)}`);
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
