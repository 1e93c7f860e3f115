// The frame of the page: views by the address's hash, the person's name, and news from the server.

import * as answers from "./answers.js";
import * as ask from "./ask.js";
import { complain, get, me, news } from "./api.js";
import * as clusters from "./clusters.js";
import * as exporting from "./export.js";
import { knowData, learnCommon } from "./faces.js";
import * as map from "./map.js";
import { language, word } from "./words.js";

const VIEWS = { ask, clusters, map, answers, export: exporting };
const EVERY = 2000; // milliseconds between two looks at the server

let current = null;
let leave = null;
let state = null;
let turn = 0;
let isReady = false;

function translate() {
  document.documentElement.lang = language;
  for (const each of document.querySelectorAll("[data-word]")) each.textContent = word(each.dataset.word);
  for (const each of document.querySelectorAll("[data-label]")) each.setAttribute("aria-label", word(each.dataset.label));
}

async function open() {
  const name = VIEWS[location.hash.slice(1)] ? location.hash.slice(1) : "ask";
  const mine = (turn += 1);
  leave?.();
  leave = null;
  const root = document.getElementById("view");
  root.replaceChildren();
  root.className = `view-${name}`;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${word(name)} · pairmargin`;
  try {
    state = await get("state", { who: me.name });
    knowData(state.data);
    if (!isReady && state.kind === "text") await learnCommon();
    isReady = true;
    if (mine !== turn) return;
    current = VIEWS[name];
    const cleanup = await current.show(root, state);
    if (mine !== turn) { cleanup(); return; } // another view was opened meanwhile
    leave = cleanup;
    showState();
  } catch (error) { complain(error); }
}

function showState() {
  document.body.dataset.learning = state.learning;
  document.body.dataset.version = state.version;
  const person = document.getElementById("person");
  person.textContent = me.name || word("nobody");
  person.setAttribute("aria-label", word("changeName", person.textContent));
}

async function look() {
  if (document.hidden || !current) return;
  try {
    const before = state?.version;
    const fresh = await news();
    if (!fresh) return;
    state = fresh;
    showState();
    current?.update?.(state, state.version !== before);
    if (state.error) complain(new Error(state.error));
  } catch (error) { complain(error); }
}

function askName() {
  const dialog = document.getElementById("name-dialog");
  const input = document.getElementById("name-input");
  input.value = me.name;
  dialog.showModal();
  dialog.returnValue = "";
  dialog.addEventListener("close", () => {
    if (dialog.returnValue === "ok") me.name = input.value.trim(); // Escape leaves it as it was
    me.asked = true;
    open();
  }, { once: true });
}

if (location.search) history.replaceState(null, "", location.pathname + location.hash); // the token is in the cookie now
translate();
document.getElementById("person").addEventListener("click", askName);
document.querySelector(".skip").addEventListener("click", (event) => { // its address is no view
  event.preventDefault();
  document.getElementById("view").focus();
});
window.addEventListener("hashchange", () => { open(); document.getElementById("view").focus(); });
if (me.asked) await open();
else askName(); // which opens the view
setInterval(look, EVERY);
