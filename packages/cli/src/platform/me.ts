import { roleSchema } from "@fairlead/protocol/resources";
import { z } from "zod";
import { callJson, type Host } from "./http-client.ts";

const meSchema = z.looseObject({
  id: z.string(),
  email: z.string(),
  name: z.string(),
  platformAdmin: z.boolean(),
  projects: z.array(z.looseObject({ id: z.string(), name: z.string(), role: roleSchema })),
});
export type Me = z.infer<typeof meSchema>;

/** The signed-in user and their projects. @throws CliError */
export function fetchMe(host: Host): Promise<Me> {
  return callJson(host, { path: "/v1/me" }, meSchema);
}
