/** The pages' one stylesheet: readable on a phone, in the dark, and by keyboard alone. */
export const STYLESHEET = `:root {
  color-scheme: light dark;
  --paper: #f4f6f8;
  --card: #ffffff;
  --ink: #14202b;
  --soft: #52606d;
  --line: #cfd8e0;
  --field: #7b8a99;
  --accent: #0b5e8a;
  --accent-ink: #ffffff;
  --accent-hover: #084a6d;
  --bad: #a61b1b;
  --bad-paper: #fdeeee;
  --good: #14653a;
  --good-paper: #e9f7ef;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #0f1720;
    --card: #17222e;
    --ink: #e8eef4;
    --soft: #a3b2c0;
    --line: #2d3c4b;
    --field: #7d90a2;
    --accent: #6cc3f2;
    --accent-ink: #06202f;
    --accent-hover: #94d5f8;
    --bad: #ff9a94;
    --bad-paper: #3a1c1e;
    --good: #7fdca6;
    --good-paper: #143022;
  }
}
*, *::before, *::after { box-sizing: border-box; }
html { font: 100%/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif; }
body {
  margin: 0;
  min-height: 100vh;
  display: flex;
  flex-direction: column;
  align-items: center;
  padding: 1.25rem 1rem 3rem;
  background: var(--paper);
  color: var(--ink);
}
body > * { width: 100%; max-width: 26rem; }
body.wide > * { max-width: 42rem; }
header { display: flex; align-items: center; justify-content: space-between; gap: 1rem; padding: 1rem 0 1.25rem; }
.brand { display: inline-flex; align-items: center; gap: 0.5rem; font-weight: 650; font-size: 1.125rem; color: inherit; text-decoration: none; }
.brand svg { width: 2rem; height: 2rem; flex: none; }
main { background: var(--card); border: 1px solid var(--line); border-radius: 0.75rem; padding: 1.75rem; }
main > :last-child, section > :last-child { margin-bottom: 0; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 1.125rem; letter-spacing: -0.01em; }
h2 { font-size: 1.125rem; line-height: 1.3; margin: 0 0 0.75rem; }
p { margin: 0 0 1rem; }
p, dd, li { overflow-wrap: anywhere; }
section { border-top: 1px solid var(--line); margin-top: 1.75rem; padding-top: 1.5rem; }
a { color: var(--accent); text-underline-offset: 0.2em; }
a:hover { color: var(--accent-hover); }
.soft, .hint { color: var(--soft); }
.field { margin-bottom: 1.125rem; }
.check { display: grid; grid-template-columns: auto 1fr; gap: 0.25rem 0.625rem; align-items: start; margin-bottom: 1.125rem; }
.check .error { grid-column: 1 / -1; }
.check input { width: 1.25rem; height: 1.25rem; margin: 0.125rem 0 0; }
.check label { font-weight: 400; margin: 0; }
label { display: block; font-weight: 600; margin-bottom: 0.25rem; }
.hint, .error { font-size: 0.9375rem; margin: 0 0 0.375rem; }
.error { color: var(--bad); font-weight: 600; }
input {
  width: 100%;
  min-height: 2.75rem;
  padding: 0.5rem 0.75rem;
  font: inherit;
  color: inherit;
  background: var(--card);
  border: 1px solid var(--field);
  border-radius: 0.5rem;
}
input[readonly] { background: var(--paper); }
input[aria-invalid="true"] { border-color: var(--bad); border-width: 2px; }
input.code, .code { font-family: ui-monospace, "Cascadia Mono", Menlo, Consolas, "Liberation Mono", monospace; letter-spacing: 0.12em; }
input.code { font-size: 1.375rem; text-transform: uppercase; text-align: center; }
p.code { font-size: 1.5rem; font-weight: 600; text-align: center; background: var(--paper); border-radius: 0.5rem; padding: 0.5rem; }
button, .button {
  display: inline-flex;
  align-items: center;
  justify-content: center;
  min-height: 2.75rem;
  padding: 0.5rem 1.125rem;
  font: inherit;
  font-weight: 600;
  text-decoration: none;
  border: 1px solid transparent;
  border-radius: 0.5rem;
  cursor: pointer;
}
.primary { background: var(--accent); color: var(--accent-ink); }
.primary:hover { background: var(--accent-hover); color: var(--accent-ink); }
.plain, .danger { background: transparent; border-color: var(--field); color: var(--ink); }
.plain:hover { border-color: var(--accent); color: var(--accent); }
.danger:hover { border-color: var(--bad); color: var(--bad); }
.stack button, .stack .button { width: 100%; }
.providers form + form { margin-top: 0.75rem; }
.below { margin-top: 1.5rem; }
.answers { display: grid; grid-template-columns: 1fr 1fr; gap: 0.75rem; }
.or { display: flex; align-items: center; gap: 0.75rem; margin: 1.25rem 0; color: var(--soft); font-size: 0.9375rem; }
.or::before, .or::after { content: ""; flex: 1; border-top: 1px solid var(--line); }
.notice { border-radius: 0.5rem; border-left: 0.25rem solid; padding: 0.75rem 0.875rem; }
.failure { color: var(--bad); background: var(--bad-paper); border-color: var(--bad); }
.success { color: var(--good); background: var(--good-paper); border-color: var(--good); }
dl { display: grid; grid-template-columns: minmax(6rem, auto) 1fr; gap: 0.375rem 1rem; margin: 0 0 1rem; }
dt { color: var(--soft); }
dd { margin: 0; }
.rows { list-style: none; margin: 0; padding: 0; }
.rows li { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: 0.5rem 1rem; padding: 0.75rem 0; }
.rows li + li { border-top: 1px solid var(--line); }
.rows p { margin: 0; }
.rows .soft { font-size: 0.9375rem; }
.rows > li > div { flex: 1 1 14rem; min-width: 0; }
.tag { display: inline-block; font-size: 0.8125rem; font-weight: 600; color: var(--good); background: var(--good-paper); border-radius: 1rem; padding: 0 0.625rem; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
@media (max-width: 30rem) {
  body { padding: 0.5rem 0.75rem 2rem; }
  main { padding: 1.25rem; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: 0.5rem; }
  .answers { grid-template-columns: 1fr; }
}
@media (forced-colors: active) {
  button, .button { border-color: ButtonText; }
}
`;
