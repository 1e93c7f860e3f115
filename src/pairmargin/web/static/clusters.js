// Clusters: a shelf for each, the most certain first. Dragging an item elsewhere becomes answers.

import { complain, get, post } from "./api.js";
import { button, element, say } from "./dom.js";
import { largeFace, scrollTogether, tile } from "./faces.js";
import { count, nameOf, number, percent, word } from "./words.js";

let view = null;
let dragged = null;

export async function show(root, state) {
  const steps = element("div", { class: "row" });
  const shelves = element("div", { class: "shelves" });
  root.append(element("div", { class: "head" }, element("h1", {}, word("clusters")), steps),
    element("p", { class: "hint" }, word("dragHint")), shelves);
  const own = view = { shelves, steps, list: [], shown: new Map(), waiting: false };
  showNumber(state);
  await load();
  return () => { if (view === own) view = null; };
}

export function update(state, isNew) {
  if (!view) return;
  showNumber(state);
  const isBusy = dragged !== null || document.querySelector("dialog[open]") || document.activeElement?.matches(".shelf .name");
  view.waiting = view.waiting || isNew;
  if (view.waiting && !isBusy) { view.waiting = false; load(); }
}

function showNumber(state) {
  const change = (by) => post("number", { clusters: state.clusters + by }).then((next) => { showNumber(next); say(word("number", number(next.clusters))); }).catch(complain);
  if (view) keepingFocus(view.steps, () => view.steps.replaceChildren(
    button("−", () => change(-1), { class: "round", "aria-label": word("fewer"), disabled: state.clusters <= 1, dataset: { focus: "fewer" } }),
    element("span", {}, word("number", number(state.clusters))),
    button("+", () => change(1), { class: "round", "aria-label": word("moreClusters"), dataset: { focus: "more" } })));
}

// What is drawn anew takes the focus over from what was there.
function keepingFocus(root, redraw) {
  const name = root.contains(document.activeElement) ? document.activeElement.dataset.focus : undefined;
  redraw();
  if (name) (root.querySelector(`[data-focus="${name}"]`) ?? document.getElementById("view")).focus({ preventScroll: true });
}

async function load() {
  try {
    const list = await get("clusters");
    for (const each of list) {
      for (let next = 1; next && each.sure.length < (view?.shown.get(each.cluster) ?? 0);) next = await further(each);
    }
    if (!view) return;
    view.list = list;
    keepingFocus(view.shelves, () => view.shelves.replaceChildren(...list.map(shelf)));
  } catch (error) { complain(error); }
}

function shelf(each) {
  const tiles = element("ul", { class: "tiles" }, ...each.sure.map((face) => item(face, each)));
  const name = element("input", { class: "name", value: each.name, maxLength: 100, placeholder: nameOf({ ...each, name: "" }), "aria-label": word("name") });
  name.addEventListener("change", () => {
    each.name = name.value.trim();
    post("rename", { like: likeOf(each), name: each.name }).catch(complain);
  });
  name.addEventListener("keydown", (event) => { if (event.key === "Enter") name.blur(); });
  const box = element("section", { class: `shelf k${each.cluster % 10}`, "aria-label": nameOf(each), dataset: { cluster: each.cluster } },
    element("div", { class: "shelf-head" }, name, element("span", { class: "soft" }, count(each.size)),
      element("span", { class: "spring" }),
      button(word("merge"), () => chooseOther(each), { class: "quiet", disabled: view.list.length < 2, dataset: { focus: `merge-${each.cluster}` } }),
      button(word("split"), () => splitIt(each), { class: "quiet", disabled: each.size < 2, dataset: { focus: `split-${each.cluster}` } })),
    tiles);
  if (each.size > each.sure.length) {
    box.append(button(word("more"), (event) => more(each, tiles, event.target), { class: "quiet more", dataset: { focus: `more-${each.cluster}` } }));
  }
  if (each.unsure.length) {
    box.append(element("h3", {}, `${word("uncertain")} (${number(each.unsure_size)})`),
      element("ul", { class: "tiles" }, ...each.unsure.map((face) => item(face, each))));
  }
  box.addEventListener("dragover", (event) => {
    if (dragged && dragged.from !== each.cluster) { event.preventDefault(); box.classList.add("over"); }
  });
  box.addEventListener("dragleave", () => box.classList.remove("over"));
  box.addEventListener("drop", (event) => {
    event.preventDefault();
    box.classList.remove("over");
    if (dragged && dragged.from !== each.cluster) move(dragged.row, each, dragged.element);
  });
  return box;
}

function item(face, from) {
  const label = `${face.id}, ${word("chance", percent(face.chance))}`;
  const inner = button(tile(face), () => chooseShelf(face, from, outer), { class: "tile", title: label, "aria-label": label, draggable: true, dataset: { focus: `item-${face.row}` } });
  const outer = element("li", {}, inner);
  inner.addEventListener("dragstart", (event) => {
    dragged = { row: face.row, from: from.cluster, element: outer };
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", face.id);
  });
  inner.addEventListener("dragend", () => { dragged = null; });
  return outer;
}

async function more(each, tiles, asked) {
  try {
    const seen = each.sure.length;
    await further(each);
    tiles.append(...each.sure.slice(seen).map((face) => item(face, each)));
    view?.shown.set(each.cluster, each.sure.length);
    tiles.children[seen]?.querySelector("button").focus({ preventScroll: true }); // on with what is new
    if (each.sure.length >= each.size || each.sure.length === seen) asked.remove();
  } catch (error) { complain(error); }
}

// Fetch the next items of a shelf; how many there were.
async function further(each) {
  const next = await get("shelf", { cluster: each.cluster, start: each.sure.length });
  each.sure.push(...next.sure);
  return next.sure.length;
}

// An item that stands for a shelf, whatever number the cluster has by now.
const likeOf = (each) => each.sure[0].row;

async function move(row, to, from) {
  try {
    await post("move", { row, like: likeOf(to) });
    const next = (from.nextElementSibling ?? from.previousElementSibling)?.querySelector("button");
    const hadFocus = from.contains(document.activeElement);
    for (const each of view?.shelves.querySelectorAll(`[data-focus="item-${row}"]`) ?? []) each.parentElement.remove();
    if (hadFocus) (next ?? document.getElementById("view")).focus();
    say(word("moved"));
  } catch (error) { complain(error); }
}

function dialogWith(title, ...content) {
  const dialog = document.getElementById("pair-dialog");
  const close = button(word("cancel"), () => dialog.close(), { class: "quiet" });
  dialog.replaceChildren(element("h2", { id: "pair-title" }, title), ...content, element("div", { class: "row" }, close));
  dialog.showModal();
  return dialog;
}

function choices(but, onchoice) {
  const others = view.list.filter((each) => each.cluster !== but);
  return element("div", { class: "choices" }, ...others.map((each) => {
    const choice = button(element("span", { class: `swatch k${each.cluster % 10}` }), () => onchoice(each), { class: "choice" });
    choice.append(element("span", { class: "tile", "aria-hidden": "true" }, tile(each.sure[0])), nameOf(each));
    return choice;
  }));
}

async function chooseShelf({ row }, from, outer) {
  try {
    const face = await get("face", { row }); // all of it
    if (!view) return;
    const dialog = dialogWith(word("moveTitle"), element("div", { class: "one" }, largeFace(face)),
      choices(from.cluster, (to) => { dialog.close(); move(row, to, outer); }));
  } catch (error) { complain(error); }
}

function chooseOther(each) {
  const dialog = dialogWith(word("mergeTitle"), choices(each.cluster, async (other) => {
    dialog.close();
    try {
      await post("merge", { one: likeOf(each), other: likeOf(other) });
      say(word("moved"));
    } catch (error) { complain(error); }
  }));
}

async function splitIt(each) {
  try {
    const question = await get("split-question", { cluster: each.cluster });
    const [one, other] = question.faces;
    const decide = async (answer) => {
      dialog.close();
      try {
        if (answer === "different") await post("split", { cluster: each.cluster, pair: question.pair });
        else await post("answer", { pair: question.pair, answer, n: 0 });
        say(word("moved"));
      } catch (error) { complain(error); }
    };
    const dialog = dialogWith(word("splitQuestion"), element("p", {}, word("splitText")),
      element("div", { class: "pair" }, largeFace(one, other, word("itemA")), largeFace(other, one, word("itemB"))),
      element("div", { class: "row" }, button(word("splitYes"), () => decide("different"), { class: "strong" }),
        button(word("splitNo"), () => decide("same"))));
    scrollTogether(dialog);
  } catch (error) { complain(error); }
}
