import { type Html, html } from "./html.ts";

/** A fairlead is the ring on a ship's deck that guides its ropes. */
const shape = html`<circle cx="16" cy="16" r="9.5" fill="none" stroke="currentColor" stroke-width="4"/><path d="M3 24.5C10 24.5 11 16 16 16s6-8.5 13-8.5" fill="none" stroke="currentColor" stroke-width="3" stroke-linecap="round"/>`;

/** Beside the name, which says it already. */
export const brandIcon: Html = html`<svg viewBox="0 0 32 32" aria-hidden="true" focusable="false">${shape}</svg>`;

/** In the browser's tab. */
export const TAB_ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" color="#0b5e8a"><style>@media (prefers-color-scheme: dark) { svg { color: #6cc3f2 } }</style>${shape.toString()}</svg>`;
