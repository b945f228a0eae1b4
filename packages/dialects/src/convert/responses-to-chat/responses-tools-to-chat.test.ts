import { describe, expect, test } from "vitest";
import { toChatTools } from "./responses-tools-to-chat.ts";

const fn = (name: string, rest: object = {}) => ({ type: "function", name, ...rest });
const nested = (name: string, rest: object = {}) => ({ type: "function", function: { name, ...rest } });

describe("tools of a responses request for a chat upstream", () => {
  test("are nested and keep their fields; absent and null fields stay absent", () => {
    const tools = [
      fn("a", {
        description: "d",
        parameters: { type: "object" },
        strict: true,
        cache_control: { type: "ephemeral" },
        defer_loading: true,
      }),
      fn("b", { description: null, parameters: null, strict: null }),
    ];
    expect(toChatTools({ tools }).fields.tools).toEqual([
      nested("a", {
        description: "d",
        parameters: { type: "object" },
        strict: true,
        cache_control: { type: "ephemeral" },
      }),
      nested("b"),
    ]);
  });

  test("can be free-form, with the grammar in the description", () => {
    const format = { type: "grammar", syntax: "lark", definition: "start: WORD" };
    const { fields } = toChatTools({ tools: [{ type: "custom", name: "patch", description: "d", format }] });
    expect(fields.tools).toMatchObject([
      { type: "function", function: { name: "patch", description: "d", parameters: { required: ["input"] } } },
    ]);
    expect(JSON.stringify(fields.tools)).toContain("lark grammar:\\nstart: WORD");
  });

  test("in a namespace get a unique name that maps back to the original", () => {
    const tools = [
      {
        type: "namespace",
        name: "mcp.files/",
        description: "",
        tools: [fn("read"), { type: "custom", name: "write" }],
      },
      fn("mcp_files__read"),
      { type: "namespace", name: "n".repeat(60), description: "", tools: [fn("read"), fn("reap")] },
    ];
    const { fields, names } = toChatTools({ tools });
    const told = (fields.tools ?? []).map((tool) => (tool.type === "function" ? tool.function.name : ""));
    expect(new Set(told).size).toBe(5);
    for (const name of told) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(told.map((name) => names.origin(name))).toMatchObject([
      { name: "read", namespace: "mcp.files/" },
      { name: "write", namespace: "mcp.files/", kind: "custom" },
      { name: "mcp_files__read", namespace: null },
      { name: "read", namespace: "n".repeat(60) },
      { name: "reap", namespace: "n".repeat(60) },
    ]);
    expect(told[2]).toBe("mcp_files__read");
  });

  test("are left out and listed if agents always offer them, and rejected if they carry data", () => {
    expect(toChatTools({ tools: [{ type: "web_search" }, fn("a"), { type: "image_generation" }] })).toMatchObject({
      fields: { tools: [nested("a")] },
      ignored: ["tools[0]", "tools[2]"],
    });
    for (const type of [
      "mcp",
      "file_search",
      "code_interpreter",
      "computer_use_preview",
      "shell",
      "apply_patch",
      "new",
    ]) {
      expect(() => toChatTools({ tools: [fn("a"), { type }] })).toThrow(expect.objectContaining({ param: "tools[1]" }));
    }
  });

  test("allow parallel calls only if there are any tools", () => {
    expect(toChatTools({ tools: [fn("a")], parallel_tool_calls: false }).fields).toMatchObject({
      parallel_tool_calls: false,
    });
    expect(toChatTools({ tools: [], parallel_tool_calls: false, tool_choice: "auto" }).fields).toEqual({});
  });

  test.each([
    ["auto", "auto"],
    ["required", "required"],
    [fn("b"), nested("b")],
    [{ type: "custom", name: "c" }, nested("c")],
  ])("are chosen by %j", (tool_choice, expected) => {
    const tools = [fn("a"), fn("b"), { type: "custom", name: "c" }];
    expect(toChatTools({ tools, tool_choice }).fields).toMatchObject({ tools: [{}, {}, {}], tool_choice: expected });
  });

  test("are left out if `tool_choice` is `none`", () => {
    expect(toChatTools({ tools: [fn("a")], tool_choice: "none", parallel_tool_calls: true }).fields).toEqual({});
  });

  test("are limited to the allowed ones", () => {
    const tools = [fn("a"), fn("b"), { type: "custom", name: "a" }];
    const tool_choice = {
      type: "allowed_tools",
      mode: "required",
      tools: [fn("b"), { type: "mcp", server_label: "x" }],
    };
    expect(toChatTools({ tools, tool_choice }).fields).toEqual({ tools: [nested("b")], tool_choice: "required" });
    const none = { type: "allowed_tools", mode: "auto", tools: [fn("x")] };
    expect(toChatTools({ tools, tool_choice: none }).fields).toEqual({});
  });

  test.each([
    ["tool_choice", { tools: [fn("a")], tool_choice: fn("b") }],
    ["tool_choice", { tools: [fn("a")], tool_choice: { type: "custom", name: "a" } }],
    ["tool_choice", { tools: [{ type: "web_search" }], tool_choice: "required" }],
    ["tool_choice", { tools: [{ type: "web_search" }], tool_choice: { type: "web_search" } }],
    ["tool_choice", { tools: [fn("a")], tool_choice: { type: "allowed_tools", mode: "required", tools: [fn("x")] } }],
    ["tool_choice", { tools: [fn("a")], tool_choice: "any" }],
    ["tool_choice.name", { tools: [fn("a")], tool_choice: { type: "function", function: { name: "a" } } }],
    ["tools", { tools: "all" }],
    ["tools[0].name", { tools: [nested("a")] }],
    ["tools[0].type", { tools: [{ name: "a" }] }],
    [
      "tools[0].tools[0]",
      { tools: [{ type: "namespace", name: "n", tools: [{ type: "namespace", name: "m", tools: [] }] }] },
    ],
    ["parallel_tool_calls", { tools: [fn("a")], parallel_tool_calls: "no" }],
  ])("are rejected because of %s in %j", (param, source) => {
    expect(() => toChatTools(source)).toThrow(expect.objectContaining({ code: "invalid_request", param }));
  });
});
