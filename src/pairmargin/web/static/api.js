// Talking to the server. An answer has a key, so that one that is sent twice counts once.

import { word } from "./words.js";
import { say } from "./dom.js";

const store = {
  get: (name) => { try { return localStorage.getItem(name) ?? ""; } catch { return ""; } },
  set: (name, value) => { try { localStorage.setItem(name, value); } catch { /* private windows */ } },
};

export const me = {
  get name() { return store.get("pairmargin-name"); },
  set name(value) { store.set("pairmargin-name", value); },
  get asked() { return store.get("pairmargin-asked") !== ""; },
  set asked(value) { store.set("pairmargin-asked", value ? "yes" : ""); },
};

export function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function told(response) {
  const isJson = response.headers.get("content-type")?.startsWith("application/json");
  const body = isJson ? await response.json() : { error: (await response.text()).trim() || undefined };
  if (response.ok) return body;
  throw new Error(body.error ?? `${response.status} ${response.statusText}`);
}

export async function get(name, query = {}) {
  return told(await fetch(`/api/${name}?${new URLSearchParams(query)}`));
}

let changes = 0; // requests to change something that were begun or ended

export async function post(name, body = {}, tries = 3) {
  const content = JSON.stringify({ who: me.name, key: newKey(), ...body }); // sent again, it counts once
  changes += 1;
  try {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const headers = { "Content-Type": "application/json" };
        return await told(await fetch(`/api/${name}`, { method: "POST", headers, body: content }));
      } catch (error) {
        if (!(error instanceof TypeError) || attempt >= tries) throw error; // only a lost connection is worth another try
        await new Promise((resolve) => setTimeout(resolve, 300 * attempt));
      }
    }
  } finally { changes += 1; }
}

export async function news() {
  // The server's state, or null if something was changed meanwhile: it may be from before.
  const before = changes;
  const state = await get("state", { who: me.name });
  return changes === before ? state : null;
}

export function complain(error) {
  say(error instanceof TypeError ? word("offline") : word("failed", error.message));
}
