// Answers: all of them, the doubtful ones first; each can be changed or deleted.

import { complain, get, post } from "./api.js";
import { button, element, say } from "./dom.js";
import { tile } from "./faces.js";
import { locale, number, word } from "./words.js";

let view = null;

export async function show(root, state) {
  const list = element("ol", { class: "list" });
  const about = element("p", { class: "hint" });
  root.append(element("div", { class: "head" }, element("h1", {}, word("answers")), button(word("learn"), learn, { class: "quiet" })), about, list);
  const own = view = { root, list, about };
  update(state);
  await load(0);
  return () => { if (view === own) view = null; };
}

export function update(state) {
  if (!view) return;
  const parts = [];
  if (state.kappa !== null) parts.push(word("agreementOf", state.kappa.toLocaleString(locale, { maximumFractionDigits: 2 })));
  if (state.disagreements) parts.push(word("disagreements", number(state.disagreements)));
  const people = Object.entries(state.people);
  if (people.length > 1) parts.push(people.map(([who, n]) => `${who || word("nobody")}: ${number(n)}`).join(", "));
  view.about.textContent = parts.join(" · ");
}

async function learn() {
  try { update(await post("refit")); say(word("learning")); } catch (error) { complain(error); }
}

async function load(start) {
  try {
    const page = await get("answers", { start });
    if (!view) return;
    if (!page.total) { view.list.replaceChildren(element("li", { class: "empty" }, word("none"))); return; }
    view.list.append(...page.rows.map(entry));
    view.more?.remove();
    if (start + page.rows.length < page.total) {
      view.more = button(word("more"), () => load(view.list.children.length), { class: "quiet more" });
      view.root.append(view.more);
    }
  } catch (error) { complain(error); }
}

function entry(row) {
  const when = new Date(row.at).toLocaleString(locale, { dateStyle: "medium", timeStyle: "short" });
  const marks = [];
  if (row.doubt > 0.5) marks.push(element("span", { class: "flag" }, word("doubtful")));
  if (row.disagreed) marks.push(element("span", { class: "flag" }, word("disagreed")));
  const verdict = element("strong", { class: row.answer }, word(row.answer));
  const line = element("li", { class: "entry" },
    element("div", { class: "two" }, ...row.faces.map((face) => element("span", { class: "tile", title: face.id }, tile(face)))),
    element("div", { class: "what" }, element("p", {}, verdict, ...marks),
      element("p", { class: "soft" }, row.who ? word("by", row.who, when) : when)),
    element("div", { class: "row" },
      ...["same", "different"].filter((answer) => answer !== row.answer).map((answer) =>
        button(`→ ${word(answer)}`, () => change(row, answer, line), { class: "quiet", "aria-label": word("changeTo", word(answer)) })),
      button(word("delete"), () => change(row, "deleted", line), { class: "quiet" })));
  return line;
}

async function change(row, answer, line) {
  try {
    update(await post("change", { pair: row.pair, answer, who: row.who }));
    say(word("saved", word(answer)));
    if (answer === "deleted") {
      const next = line.nextElementSibling?.querySelector("button") ?? document.getElementById("view");
      line.remove();
      next.focus();
    } else {
      const fresh = entry({ ...row, answer, doubt: 0 });
      line.replaceWith(fresh);
      fresh.querySelector("button").focus();
    }
  } catch (error) { complain(error); }
}
