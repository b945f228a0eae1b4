/** The order of a chat completion stream. */

interface Chunk {
  readonly error?: unknown;
  readonly id: string;
  readonly created: number;
  readonly usage?: unknown;
  readonly choices: readonly {
    readonly index: number;
    readonly finish_reason: string | null;
    readonly delta: { readonly role?: string; readonly tool_calls?: readonly ToolCall[] };
  }[];
}

interface ToolCall {
  readonly index: number;
  readonly id?: string;
  readonly type?: string;
  readonly function?: { readonly name?: string };
  readonly custom?: { readonly name?: string };
}

/** @throws Error that lists every broken rule. A stream ends with a finish (and usage, if asked for), or with an error. */
export function assertChatOrder(events: readonly unknown[]): void {
  const problems = chatOrderProblems(events);
  if (problems.length > 0)
    throw new Error(`The stream breaks the order of chat completions:\n- ${problems.join("\n- ")}`);
}

export function chatOrderProblems(events: readonly unknown[]): readonly string[] {
  const problems: string[] = [];
  const expect = (isSo: boolean, problem: string): void => void (isSo || problems.push(problem));
  const calls = new Set<number>();
  let finish: string | null = null;
  let end: "usage" | "error" | null = null;
  let first: Chunk | null = null;
  for (const event of events as readonly Chunk[]) {
    expect(end === null, `something after the ${end}`);
    if (event.error) {
      expect(finish === null, "an error after the finish");
      end = "error";
      continue;
    }
    if (!first) expect(event.choices[0]?.delta.role === "assistant", "the first chunk has no role");
    first ??= event;
    expect(event.id === first.id && event.created === first.created, "chunks differ in id or time");
    if (event.choices.length === 0) {
      expect(Boolean(event.usage) && finish !== null, "no choice, and no usage after a finish");
      end = "usage";
      continue;
    }
    for (const { delta, finish_reason, index } of event.choices) {
      expect(index === 0 && finish === null, "a delta after the finish, or of another choice");
      finish = finish_reason ?? finish;
      for (const call of delta.tool_calls ?? []) {
        const name = call.function?.name ?? call.custom?.name;
        const isNew = !calls.has(call.index);
        expect(!isNew || call.index === calls.size, `call ${call.index} is begun out of turn`);
        expect(isNew === Boolean(call.id && call.type && name), `call ${call.index} is named again, or not at all`);
        calls.add(call.index);
      }
    }
  }
  expect(end === "error" || finish !== null, "neither finish nor error");
  return problems;
}
