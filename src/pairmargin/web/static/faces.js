// How an item looks: a picture, a text, or a row of a table.

import { get } from "./api.js";
import { element } from "./dom.js";
import { word } from "./words.js";

let data = ""; // what tells these data from others that the browser may have kept pictures of
export const pictureOf = (face, size) => `/picture/${size}/${face.row}?v=${data}`;
export const knowData = (mark) => { data = mark; };

export function preload(questions) {
  for (const face of questions.flatMap((question) => question.faces)) {
    if (face.kind === "image") new Image().src = pictureOf(face, "large");
  }
}

// An item beside another one, or alone.
export function largeFace(face, other = null, label = "") {
  const card = element("figure", { class: `face ${face.kind}`, "aria-label": label ? `${label}: ${face.id}` : face.id });
  if (face.kind === "image") card.append(picture(face, "large"));
  else if (face.kind === "table") card.append(tableOf(face, other));
  else card.append(textOf(face, wordsOf(other?.kind === "text" ? other.text : "")));
  card.append(element("figcaption", { "aria-hidden": "true" }, face.id)); // the figure's label has it
  return card;
}

export function tile(face) {
  if (face.kind === "image") return picture(face, "small");
  const text = face.kind === "table" ? face.cells.map(([name, value]) => `${name}: ${value}`).join("\n") : face.text;
  return element("span", { class: "words" }, element("b", {}, face.id), `\n${text}`);
}

function picture(face, size) {
  const loading = size === "small" ? "lazy" : "eager"; // a shelf that is not on the screen can wait
  return element("img", { loading, src: pictureOf(face, size), alt: face.id, draggable: false, decoding: "sync" });
}

const WORD = /[\p{L}\p{N}]+/gu;
let common = new Set(); // words of most texts, which tell nothing

export async function learnCommon() { common = new Set(await get("common")); }

const wordsOf = (text) => new Set((text.match(WORD) ?? []).map((each) => each.toLowerCase()).filter((each) => each.length > 2 && !common.has(each)));

function textOf({ id, text }, shared) {
  const box = scrolled(id);
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
  const theirs = new Map((other ?? face).cells);
  const rows = face.cells.map(([name, value]) => {
    const differs = theirs.get(name) !== value;
    return element("tr", { class: differs ? "differs" : "" },
      element("th", { scope: "row" }, name), element("td", {}, differs ? element("mark", {}, value) : value));
  });
  return scrolled(face.id, element("table", {}, element("tbody", {}, ...rows)));
}

const scrolled = (label, ...content) => element("div", { class: "text", tabIndex: 0, role: "group", "aria-label": label }, ...content);

// Two rows of a table are scrolled together, so that the same columns stand side by side.
export function scrollTogether(pair) {
  const boxes = [...pair.querySelectorAll(".table .text")];
  for (const box of boxes) {
    box.addEventListener("scroll", () => { for (const other of boxes) other.scrollTop = box.scrollTop; }, { passive: true });
  }
}

export function hint(kind) {
  return kind === "text" ? word("shared") : kind === "table" ? word("differ") : "";
}
