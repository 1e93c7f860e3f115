// Export: what a person takes home.

import { element } from "./dom.js";
import { count, number, word } from "./words.js";

const FILES = { labels: "labels.csv", pairs: "pairs.csv", model: "model.safetensors", report: "report.html" };

export async function show(root, state) {
  const cards = Object.entries(FILES).map(([name, file]) =>
    element("li", { class: "card" }, element("h2", {}, word(name)), element("p", {}, word(`${name}Text`)), takes(name, file)));
  root.append(element("h1", {}, word("exportTitle")),
    element("p", { class: "hint" }, word("summary", count(state.items), number(state.progress.answers), number(state.progress.inferred))),
    element("ul", { class: "cards" }, ...cards));
  update(state);
  return () => {};
}

function takes(name, file) {
  const link = element("a", { class: "button", href: `/export/${file}`, download: file, "aria-label": `${word("download")}: ${file}` }, file);
  return name === "model" ? element("div", { id: "model" }, link, element("p", { class: "soft" }, word("noModel"))) : link;
}

export function update(state) {
  const [link, why] = document.getElementById("model")?.children ?? [];
  if (link) [link.hidden, why.hidden] = [!state.has_model, state.has_model];
}
