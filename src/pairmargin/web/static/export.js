// Export: what a person takes home.

import { element } from "./dom.js";
import { word } from "./words.js";

const FILES = { labels: "labels.csv", pairs: "pairs.csv", model: "model.safetensors", report: "report.html" };

export async function show(root) {
  const cards = Object.entries(FILES).map(([name, file]) =>
    element("li", { class: "card" }, element("h2", {}, word(name)), element("p", {}, word(`${name}Text`)),
      element("a", { class: "button", href: `/export/${file}`, download: file, "aria-label": `${word("download")}: ${word(name)}` }, file)));
  root.append(element("h1", {}, word("exportTitle")), element("ul", { class: "cards" }, ...cards));
  return () => {};
}
