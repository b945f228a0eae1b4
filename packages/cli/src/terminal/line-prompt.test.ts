import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { Interrupted } from "../cli-error.ts";
import { LinePrompt } from "./line-prompt.ts";

/** A terminal made of streams, with the key codes of a real one. */
function setUp() {
  const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => input });
  const output = Object.assign(new PassThrough(), { isTTY: true, columns: 80 });
  let shown = "";
  output.setEncoding("utf8").on("data", (text: string) => (shown += text));
  return { input, shown: () => shown, prompt: new LinePrompt({ input, output, commands: ["/help", "/history"] }) };
}

const CTRL_C = "\u0003";
const CTRL_D = "\u0004";
const UP = "\u001b[A";

describe("the prompt", () => {
  test("reads one message per line, with line editing as in a shell", async () => {
    const { input, prompt } = setUp();
    const message = prompt.read("> ");
    input.write("helo\u001b[Dl\r");
    expect(await message).toBe("hello");
  });

  test("treats pasted lines as one message, even if the last has no line break", async () => {
    const { input, prompt, shown } = setUp();
    const message = prompt.read("> ");
    input.write("first\nsecond\nthird");
    await expect.poll(shown).toContain("… ");
    input.write("\r");
    expect(await message).toBe("first\nsecond\nthird");
  });

  test("continues on the next line after a backslash", async () => {
    const { input, prompt, shown } = setUp();
    const message = prompt.read("> ");
    input.write("one \\\r");
    await expect.poll(shown).toContain("… ");
    input.write("two\r");
    expect(await message).toBe("one \ntwo");
  });

  test("recalls earlier messages with the arrow keys", async () => {
    const { input, prompt } = setUp();
    const first = prompt.read("> ");
    input.write("what is 2+2?\r");
    await first;
    const second = prompt.read("> ");
    input.write(`${UP}\r`);
    expect(await second).toBe("what is 2+2?");
  });

  test("completes commands", async () => {
    const { input, prompt, shown } = setUp();
    const message = prompt.read("> ");
    input.write("/he");
    await expect.poll(shown).toContain("/he");
    input.write("\t");
    await expect.poll(shown).toContain("lp");
    input.write("\r");
    expect(await message).toBe("/help");
  });

  test("clears the line on Ctrl-C, and exits when it is empty", async () => {
    const { input, prompt, shown } = setUp();
    const message = prompt.read("> ");
    input.write(`half a thought${CTRL_C}`);
    await expect.poll(shown).toContain("^C");
    input.write(CTRL_C);
    await expect(message).rejects.toBeInstanceOf(Interrupted);
  });

  test("ends on Ctrl-D", async () => {
    const { input, prompt } = setUp();
    const message = prompt.read("> ");
    input.write(CTRL_D);
    expect(await message).toBeNull();
  });
});
