// How an item looks: a picture, a text, or a row of a table.

import { element } from "./dom.js";
import { word } from "./words.js";

export const pictureOf = (face, size) => `/picture/${size}/${face.row}`;

export function preload(questions) {
  for (const face of questions.flatMap((question) => question.faces)) {
    if (face.kind === "image") new Image().src = pictureOf(face, "large");
  }
}

export function largeFace(face, other, label) {
  const card = element("figure", { class: `face ${face.kind}`, "aria-label": label });
  if (face.kind === "image") card.append(picture(face, "large"));
  else if (face.kind === "table") card.append(tableOf(face, other));
  else card.append(textOf(face.text, face.kind === "text" ? wordsOf(other.text) : new Set()));
  card.append(element("figcaption", {}, face.id));
  return card;
}

export function tile(face) {
  if (face.kind === "image") return picture(face, "small");
  const text = face.kind === "table" ? face.cells.map(([name, value]) => `${name}: ${value}`).join("\n") : face.text;
  return element("span", { class: "words" }, text.slice(0, 160) || face.id);
}

function picture(face, size) {
  return element("img", { src: pictureOf(face, size), alt: face.id, draggable: false, decoding: "sync" });
}

const WORD = /[\p{L}\p{N}]+/gu;
const wordsOf = (text) => new Set((text.match(WORD) ?? []).map((each) => each.toLowerCase()).filter((each) => each.length > 3));

function textOf(text, shared) {
  const box = element("div", { class: "text", tabIndex: 0 });
  let end = 0;
  for (const match of text.matchAll(WORD)) {
    if (!shared.has(match[0].toLowerCase())) continue;
    box.append(text.slice(end, match.index), element("mark", {}, match[0]));
    end = match.index + match[0].length;
  }
  box.append(text.slice(end));
  return box;
}

function tableOf(face, other) {
  const theirs = new Map(other.cells);
  const rows = face.cells.map(([name, value]) => {
    const differs = theirs.get(name) !== value;
    return element("tr", { class: differs ? "differs" : "" },
      element("th", { scope: "row" }, name), element("td", {}, differs ? element("mark", {}, value) : value));
  });
  return element("div", { class: "text", tabIndex: 0 }, element("table", {}, element("tbody", {}, ...rows)));
}

export function hint(kind) {
  return kind === "text" ? word("shared") : kind === "table" ? word("differ") : "";
}
