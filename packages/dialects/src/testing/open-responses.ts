import { z } from "zod";

/** What Open Responses (2026-04-24) requires of a response object: every field, null or not. */

const nullable = <T extends z.ZodType>(schema: T) => schema.nullable();
const functionTool = z.strictObject({
  type: z.literal("function"),
  name: z.string(),
  description: nullable(z.string()),
  parameters: nullable(z.record(z.string(), z.unknown())),
  strict: nullable(z.boolean()),
});

const usage = z.object({
  input_tokens: z.number().int(),
  input_tokens_details: z.object({ cached_tokens: z.number().int() }),
  output_tokens: z.number().int(),
  output_tokens_details: z.object({ reasoning_tokens: z.number().int() }),
  total_tokens: z.number().int(),
});

export const openResponse = z.object({
  id: z.string(),
  object: z.literal("response"),
  created_at: z.number().int(),
  completed_at: nullable(z.number().int()),
  status: z.enum(["completed", "incomplete", "failed", "in_progress"]),
  model: z.string(),
  output: z.array(z.looseObject({ type: z.string(), id: z.string() })),
  error: nullable(z.object({ code: z.string(), message: z.string() })),
  incomplete_details: nullable(z.object({ reason: z.enum(["max_output_tokens", "content_filter"]) })),
  instructions: nullable(z.union([z.string(), z.array(z.unknown())])),
  tools: z.array(functionTool),
  tool_choice: z.union([z.enum(["none", "auto", "required"]), z.looseObject({ type: z.string() })]),
  parallel_tool_calls: z.boolean(),
  temperature: z.number(),
  top_p: z.number(),
  metadata: z.record(z.string(), z.string()),
  previous_response_id: nullable(z.string()),
  usage: nullable(usage),
  max_output_tokens: nullable(z.number()),
  max_tool_calls: nullable(z.number()),
  reasoning: z.object({ effort: nullable(z.string()), summary: nullable(z.string()) }),
  safety_identifier: nullable(z.string()),
  prompt_cache_key: nullable(z.string()),
  truncation: z.enum(["auto", "disabled"]),
  text: z.object({ format: z.looseObject({ type: z.string() }) }),
  presence_penalty: z.number(),
  frequency_penalty: z.number(),
  top_logprobs: z.number().int(),
  store: z.boolean(),
  background: z.boolean(),
  service_tier: z.string(),
});
