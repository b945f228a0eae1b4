import { expect, test } from "vitest";
import { html } from "./html.ts";

test("what is no markup is escaped, in text and in attributes", () => {
  const hostile = `<script>alert("1")</script> & '"`;
  expect(String(html`<p title="${hostile}">${hostile}</p>`)).toBe(
    '<p title="&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;&quot;">' +
      "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;&quot;</p>",
  );
});

test("markup inside markup stays as it is, in lists too", () => {
  const items = ["a", "<b>"].map((name) => html`<li>${name}</li>`);
  expect(String(html`<ul>${items}</ul>`)).toBe("<ul><li>a</li><li>&lt;b&gt;</li></ul>");
});

test("nothing is rendered for null, false and undefined, and zero is a number", () => {
  expect(String(html`[${null}${false}${undefined}${0}]`)).toBe("[0]");
});

test("a replacement pattern in a value is only text", () => {
  expect(String(html`<p>${"$& $1 $`"}</p>`)).toBe("<p>$&amp; $1 $`</p>");
});

test("what is no markup loses the marks that turn the reading direction", () => {
  const name = "\u202aA\u202b\u202c\u202d\u202eB\u2066\u2067C\u2068\u2069 שלום";
  expect(String(html`<title>${name}</title>`)).toBe("<title>ABC שלום</title>");
});
