// Ask: two items side by side, and an answer with one key. The next pairs are already here.

import { complain, get, me, newKey, post } from "./api.js";
import { button, element, say, svg } from "./dom.js";
import { hint, largeFace, preload, scrollTogether } from "./faces.js";
import { locale, number, percent, word } from "./words.js";

const AHEAD = 12; // questions that are kept ready
const KEYS = { s: "same", d: "different", u: "unsure" };

let queue = [];
let sending = Promise.resolve();
const underway = new Set(); // answered here, and not yet known to the server
let view = null;

export async function show(root, state) {
  const pair = element("div", { class: "pair", "aria-live": "polite" }); // the next two are read out
  const title = element("h1", {}, word("question"));
  const buttons = ["same", "different", "unsure"].map((answer) =>
    button(element("span", {}, word(answer)), () => answerWith(answer), {
      class: `answer ${answer}`, "aria-keyshortcuts": answer[0], dataset: { key: answer[0].toUpperCase() } }));
  const back = button(element("span", {}, word("undo")), undo, { class: "answer back", "aria-keyshortcuts": "Backspace", dataset: { key: "⌫" } });
  const figures = element("dl", { class: "figures" });
  const controls = element("div", { class: "answers" }, ...buttons, back);
  root.append(element("div", { class: "ask" }, title, element("p", { class: "hint" }, hint(state.kind)), pair, controls, figures));
  const own = view = { pair, title, figures, buttons };
  queue = [];
  update(state);
  document.addEventListener("keydown", onKey);
  try {
    queue = await get("questions", { who: me.name, n: AHEAD });
    preload(queue);
    draw();
  } catch (error) { complain(error); }
  return () => { if (view === own) { document.removeEventListener("keydown", onKey); view = null; } };
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || document.querySelector("dialog[open]")) return;
  if (!view?.pair.isConnected || event.target.closest("input, textarea")) return; // another view may be on the screen
  const answer = KEYS[event.key.toLowerCase()];
  if (answer) answerWith(answer);
  else if (event.key === "Backspace") undo();
  else return;
  event.preventDefault();
}

function draw() {
  if (!view) return;
  const [question] = queue;
  for (const each of view.buttons) each.disabled = !question;
  if (!question) {
    view.pair.replaceChildren(element("p", { class: "empty" }, word("done")));
    view.title.textContent = "";
    return;
  }
  const [one, other] = question.faces;
  view.title.textContent = word("question");
  view.pair.replaceChildren(largeFace(one, other, word("itemA")), largeFace(other, one, word("itemB")));
  scrollTogether(view.pair);
  view.pair.dataset.pair = question.pair.join("-");
}

function answerWith(answer) {
  const question = queue.shift();
  if (!question) return;
  draw(); // at once: the answer travels while the next pair is looked at
  const body = { pair: question.pair, answer, key: newKey(), n: AHEAD };
  send("answer", body, (reply) => { say(word("saved", word(answer))); return reply; }, question);
}

function undo() {
  send("undo", { key: newKey(), n: AHEAD }, (reply) => {
    say(reply.undone ? word("undone", word(reply.undone)) : word("nothing"));
    return { ...reply, first: true };
  });
}

function send(name, body, then, question) {
  if (question) underway.add(question.pair.join());
  sending = sending.then(async () => {
    try {
      const reply = await post(name, body);
      underway.delete(question?.pair.join());
      take(then(reply));
    } catch (error) {
      underway.delete(question?.pair.join());
      if (question) { // not saved: it is asked again, after the pair that is on the screen
        queue.splice(1, 0, question);
        if (queue.length === 1) draw();
      }
      complain(error);
    }
  });
}

function take(reply) {
  // What is on the screen stays there; what waits behind it is what the server now thinks best.
  const [current] = queue;
  const same = (a, b) => a && b && a.pair.join() === b.pair.join();
  const next = reply.questions.filter((each) => !underway.has(each.pair.join()));
  queue = reply.first || !current ? next : [current, ...next.filter((each) => !same(each, current))];
  preload(queue);
  if (!same(queue[0], current)) draw();
  update(reply.state);
}

export function update(state) {
  if (!view) return;
  const { progress } = state;
  const rows = [
    [number(progress.answers), word("answered")],
    [number(progress.inferred), word("inferred")],
    [percent(progress.sureness), word("sureness")],
    [progress.agreement === null ? "–" : percent(progress.agreement), word("agreement")],
    [progress.expected_gain.toLocaleString(locale, { maximumFractionDigits: 1 }), word("gain")],
  ].map(([value, text]) => element("div", {}, element("dt", {}, text), element("dd", {}, value)));
  if (progress.curve.length > 1) rows.push(element("div", {}, element("dt", {}, word("curve")), element("dd", {}, curve(progress.curve))));
  view.figures.replaceChildren(...rows);
}

function curve(points) {
  const [width, height] = [200, 56];
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": points.map(([n, sure]) => `${number(n)}: ${percent(sure)}`).slice(-5).join(", "), class: "curve" });
  drawing.append(svg("path", { class: "base", d: `M0,${height - 1}H${width}` }));
  const most = Math.max(...points.map(([n]) => n), 1);
  const place = ([n, sure]) => `${(n / most * (width - 8) + 4).toFixed(1)},${(height - 4 - sure * (height - 8)).toFixed(1)}`;
  drawing.append(svg("path", { class: "line", d: `M${points.map(place).join("L")}` }));
  const [x, y] = place(points.at(-1)).split(",");
  drawing.append(svg("circle", { cx: x, cy: y, r: 3.5, class: "dot" }));
  return drawing;
}
