import { expect, test } from "vitest";
import { html } from "./html.ts";

test("values that are not markup are escaped, in text and in attributes", () => {
  const hostile = `<script>alert("1")</script> & '"`;
  expect(String(html`<p title="${hostile}">${hostile}</p>`)).toBe(
    '<p title="&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;&quot;">' +
      "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;&quot;</p>",
  );
});

test("nested markup is not escaped again, in lists either", () => {
  const items = ["a", "<b>"].map((name) => html`<li>${name}</li>`);
  expect(String(html`<ul>${items}</ul>`)).toBe("<ul><li>a</li><li>&lt;b&gt;</li></ul>");
});

test("null, false and undefined render as nothing, and zero as a number", () => {
  expect(String(html`[${null}${false}${undefined}${0}]`)).toBe("[0]");
});

test("a replacement pattern in a value is plain text", () => {
  expect(String(html`<p>${"$& $1 $`"}</p>`)).toBe("<p>$&amp; $1 $`</p>");
});

test("values that are not markup lose characters that change the text direction", () => {
  const name = "\u202aA\u202b\u202c\u202d\u202eB\u2066\u2067C\u2068\u2069 שלום";
  expect(String(html`<title>${name}</title>`)).toBe("<title>ABC שלום</title>");
});
