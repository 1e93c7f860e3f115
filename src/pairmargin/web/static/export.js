// Export: what a person takes home.

import { element } from "./dom.js";
import { count, number, word } from "./words.js";

const FILES = { labels: "labels.csv", pairs: "pairs.csv", model: "model.safetensors", report: "report.html" };

export async function show(root, state) {
  const cards = Object.entries(FILES).map(([name, file]) =>
    element("li", { class: "card" }, element("h2", {}, word(name)), element("p", {}, word(`${name}Text`)),
      element("a", { class: "button", href: `/export/${file}`, download: file, "aria-label": `${word("download")}: ${word(name)}` }, file)));
  root.append(element("h1", {}, word("exportTitle")),
    element("p", { class: "hint" }, word("summary", count(state.items), number(state.progress.answers), number(state.progress.inferred))),
    element("ul", { class: "cards" }, ...cards));
  return () => {};
}
