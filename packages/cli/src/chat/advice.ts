import { CliError } from "../cli-error.ts";
import { Refused } from "../platform/http-client.ts";

/** Adds advice to an error of the chat routes; other errors are returned unchanged. */
export function advised(error: unknown): unknown {
  const advice = error instanceof Refused ? ADVICE[error.code ?? ""] : undefined;
  return error instanceof Refused && advice !== undefined
    ? new CliError(`${error.message}\n${advice}`, { cause: error })
    : error;
}

/** Advice by error code, where the server's message has none. */
const ADVICE: Readonly<Record<string, string>> = {
  session_not_found: "`fairlead chat-session list` shows your sessions in this project.",
  session_busy:
    "A response is still running in this session, perhaps in another window. Wait for it to finish, or stop it with /stop in `fairlead chat`.",
  insufficient_balance: "A platform administrator can add credits with `fairlead credits add`. Your question is saved.",
  held_by_running_calls: "Other calls in progress have reserved the remaining balance. Try again in a moment.",
  permission_denied: "`fairlead project list` lists the projects that you can chat in.",
  not_configured:
    "Set a model with --model, or /model in the chat. `fairlead project default-model` sets one for the project.",
  upstream_failed: "Your question is saved. Ask it again, or use /retry in the chat; it is not stored twice.",
};
