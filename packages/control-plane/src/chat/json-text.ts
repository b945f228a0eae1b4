/** A long list as JSON text, portion by portion. Pure. */

/**
 * @param head what stands beside the list.
 * @param name the list's, which comes last.
 */
export async function* jsonText(
  head: Readonly<Record<string, unknown>>,
  name: string,
  portions: AsyncIterable<readonly unknown[]>,
): AsyncGenerator<string> {
  const before = JSON.stringify(head).slice(0, -1);
  let separator = "";
  yield `${before}${before === "{" ? "" : ","}${JSON.stringify(name)}:[`;
  for await (const portion of portions) {
    if (portion.length === 0) continue;
    yield separator + portion.map((each) => JSON.stringify(each)).join(",");
    separator = ",";
  }
  yield "]}";
}
