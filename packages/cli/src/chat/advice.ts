import { CliError } from "../cli-error.ts";
import { Refused } from "../http-client.ts";

/** A refusal of the chat routes, with what to do about it; anything else as it is. */
export function advised(error: unknown): unknown {
  const advice = error instanceof Refused ? ADVICE[error.code ?? ""] : undefined;
  return error instanceof Refused && advice !== undefined
    ? new CliError(`${error.message}\n${advice}`, { cause: error })
    : error;
}

/** What to do about the refusals, where the server's own words do not say. */
const ADVICE: Readonly<Record<string, string>> = {
  session_not_found: "`fairlead chat-session list` shows your sessions in this project.",
  session_busy:
    "Another turn runs in this session, in another window perhaps. Wait for its end, or end it: /stop in `fairlead chat`.",
  insufficient_balance: "An administrator adds credits: `fairlead credits add`. The question is kept.",
  held_by_running_calls: "The money is set aside for calls that still run. Try again in a moment.",
  permission_denied: "`fairlead project list` shows the projects that you can chat in.",
  not_configured:
    "Name a model with --model, or /model in the chat; `fairlead project default-model` sets one for all.",
  upstream_failed: "The question is kept: ask it once more, or /retry in the chat. It will not stand there twice.",
};
