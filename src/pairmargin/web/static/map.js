// Map: every item a dot. Dots and lines are drawn pixel by pixel into one image, so that 50 000 of them stay smooth: a
// canvas without a graphics card is slow at a thousand dashed lines.

import { complain, get } from "./api.js";
import { button, element } from "./dom.js";
import { tile } from "./faces.js";
import { nameOf, number, word } from "./words.js";

const NEAR = 12; // pixels within which a dot is meant
const CELLS = 128; // of the grid, a side, that finds the dot under the pointer
const WHILE_MOVING = 300; // lines that are drawn then, at most
const STILL = 6; // pixels that a finger may move and still only touch

let view = null;

export async function show(root, state) {
  const canvas = element("canvas", { tabIndex: 0, role: "application", "aria-label": `${word("map")}. ${word("mapText")}` });
  const card = element("div", { class: "hover", hidden: true, "aria-live": "polite" });
  const check = element("input", { type: "checkbox", id: "lines", checked: true, onchange: () => schedule() });
  const tools = element("div", { class: "row" }, element("label", { class: "check", for: "lines" }, check, word("lines")),
    button(word("reset"), () => { fit(); schedule(); }, { class: "quiet" }));
  const legend = element("ul", { class: "legend" });
  const frame = element("div", { class: "map" }, canvas, card);
  root.append(element("div", { class: "head" }, element("h1", {}, word("map")), tools), element("p", { class: "hint" }, word("mapText")), frame, legend);
  const own = view = { canvas, card, check, legend, frame, n: state.items, pointers: new Map(), faces: new Map() };
  listen();
  await load(true);
  const watch = new ResizeObserver(() => schedule(true));
  watch.observe(frame);
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const repaint = () => schedule(true);
  scheme.addEventListener("change", repaint);
  return () => { watch.disconnect(); scheme.removeEventListener("change", repaint); if (view === own) view = null; };
}

export function update(state, isNew) {
  if (view && isNew) load(false);
}

async function load(isFirst) {
  try {
    const [response, lines, clusters] = await Promise.all([fetch("/api/map"), get("lines"), get("legend")]);
    if (!response.ok) throw new Error(`${response.status}`);
    const bytes = await response.arrayBuffer();
    if (!view) return;
    const n = view.n;
    view.places = new Float32Array(bytes, 0, 2 * n);
    view.cluster = new Uint16Array(bytes, 8 * n, n);
    view.sure = new Uint8Array(bytes, 10 * n, n);
    view.lines = lines;
    view.names = new Map(clusters.map((each) => [each.cluster, nameOf(each)]));
    view.legend.replaceChildren(...clusters.map((each) => element("li", {}, element("span", { class: `swatch k${each.cluster % 10}` }),
      nameOf(each), element("span", { class: "soft" }, number(each.size)))));
    index();
    if (isFirst) fit();
    schedule(true);
  } catch (error) { complain(error); }
}

// Where things are

function fit() {
  const [left, top, right, bottom] = view.bounds;
  const { clientWidth: width, clientHeight: height } = view.frame;
  view.scale = 0.92 * Math.min(width / Math.max(right - left, 1e-9), height / Math.max(bottom - top, 1e-9));
  view.whole = view.scale;
  view.x = width / 2 - view.scale * (left + right) / 2;
  view.y = height / 2 - view.scale * (top + bottom) / 2;
}

function index() {
  const { places, n } = view;
  const bounds = [Infinity, Infinity, -Infinity, -Infinity];
  for (let k = 0; k < n; k += 1) {
    bounds[0] = Math.min(bounds[0], places[2 * k]);
    bounds[1] = Math.min(bounds[1], places[2 * k + 1]);
    bounds[2] = Math.max(bounds[2], places[2 * k]);
    bounds[3] = Math.max(bounds[3], places[2 * k + 1]);
  }
  view.bounds = bounds;
  view.cell = Math.max(bounds[2] - bounds[0], bounds[3] - bounds[1], 1e-9) / CELLS;
  view.grid = new Map();
  for (let k = 0; k < n; k += 1) {
    const key = cellOf(places[2 * k]) + cellOf(places[2 * k + 1], 1) * 4096;
    if (!view.grid.has(key)) view.grid.set(key, []);
    view.grid.get(key).push(k);
  }
}

const cellOf = (value, axis = 0) => Math.floor((value - view.bounds[axis]) / view.cell);

function nearest(px, py, within = NEAR) {
  const [x, y] = [(px - view.x) / view.scale, (py - view.y) / view.scale];
  const reach = Math.min(Math.ceil(within / view.scale / view.cell), CELLS);
  let [best, least] = [-1, (within / view.scale) ** 2];
  for (let i = cellOf(x) - reach; i <= cellOf(x) + reach; i += 1) {
    for (let j = cellOf(y, 1) - reach; j <= cellOf(y, 1) + reach; j += 1) {
      for (const k of view.grid.get(i + j * 4096) ?? []) {
        const distance = (view.places[2 * k] - x) ** 2 + (view.places[2 * k + 1] - y) ** 2;
        if (distance < least) [best, least] = [k, distance];
      }
    }
  }
  return best;
}

// Drawing

// Draw while something moves, and then once more with all lines.
function moving() {
  clearTimeout(view.settling);
  view.settling = setTimeout(() => { if (view) { view.settling = 0; schedule(); } }, 150);
  schedule();
}

function schedule(isResized = false) {
  if (!view?.places) return;
  view.resized ||= isResized;
  view.frameRequest ??= requestAnimationFrame(() => { if (view) { view.frameRequest = null; draw(); } });
}

// The colours of the clusters, and of lines "different" and "same", as they are in the image: blue, green, red.
function inks() {
  const style = getComputedStyle(document.documentElement);
  const ink = (name) => {
    const value = parseInt(style.getPropertyValue(name).trim().slice(1), 16);
    return ((value & 255) << 16) | (value & 0xff00) | (value >> 16);
  };
  return { dots: Array.from({ length: 10 }, (_, k) => ink(`--c${k}`)), lines: [ink("--different"), ink("--same")] };
}

function draw() {
  const began = performance.now();
  const ratio = window.devicePixelRatio || 1;
  const { canvas, frame } = view;
  const [width, height] = [Math.round(frame.clientWidth * ratio), Math.round(frame.clientHeight * ratio)];
  if (!width || !height) return;
  if (view.resized || canvas.width !== width || canvas.height !== height) {
    [canvas.width, canvas.height] = [width, height];
    view.image = new ImageData(width, height);
    view.pixels = new Uint32Array(view.image.data.buffer);
    view.inks = inks();
    view.resized = false;
  }
  drawDots(width, height, ratio);
  if (view.check.checked) drawLines(width, height, ratio);
  canvas.getContext("2d").putImageData(view.image, 0, 0);
  view.frame.dataset.drawn = (performance.now() - began).toFixed(1);
}

function drawDots(width, height, ratio) {
  const { pixels, places, cluster, sure, n } = view;
  pixels.fill(0);
  const size = Math.max(1.2, Math.min(5, 80 / Math.sqrt(n) * Math.sqrt(view.scale / 60))) * ratio;
  const shape = dot(size, width);
  const radius = Math.ceil(size) + 1;
  const colours = view.inks.dots;
  for (let k = 0; k < n; k += 1) {
    const x = Math.round((places[2 * k] * view.scale + view.x) * ratio);
    const y = Math.round((places[2 * k + 1] * view.scale + view.y) * ratio);
    if (x < radius || y < radius || x >= width - radius || y >= height - radius) continue;
    const colour = colours[cluster[k] % 10];
    const strength = sure[k] < 128 ? 0.45 : sure[k] < 204 ? 0.75 : 1;
    const start = x + y * width;
    for (let i = 0; i < shape.length; i += 2) {
      const alpha = shape[i + 1] * strength;
      const place = start + shape[i];
      if (alpha >= pixels[place] >>> 24) pixels[place] = (alpha << 24) | colour;
    }
  }
}

// The pixels of a dot: where, from its middle, and how much of each it covers, up to 255.
function dot(size, width) {
  const radius = Math.ceil(size) + 1;
  const shape = [];
  for (let dy = -radius; dy <= radius; dy += 1) {
    for (let dx = -radius; dx <= radius; dx += 1) {
      const covered = Math.max(0, Math.min(1, size + 0.5 - Math.hypot(dx, dy)));
      if (covered > 0) shape.push(dx + dy * width, Math.round(255 * covered));
    }
  }
  return shape;
}

function drawLines(width, height, ratio) {
  const every = view.settling ? Math.ceil(view.lines.length / WHILE_MOVING) : 1;
  const placeOf = (k) => [(view.places[2 * k] * view.scale + view.x) * ratio, (view.places[2 * k + 1] * view.scale + view.y) * ratio];
  const strength = Math.round(Math.max(60, Math.min(190, 1900 / Math.sqrt(view.lines.length)))); // many of them must not hide the dots
  for (let n = 0; n < view.lines.length; n += every) {
    const [i, j, same] = view.lines[n];
    const seen = inside(placeOf(i), placeOf(j), [width - 2, height - 2]);
    if (seen) drawLine(...seen, width, view.inks.lines[same], strength, same ? 1e9 : Math.round(5 * ratio));
  }
}

// One step for each pixel of the longer way; what lies between two pixels is shared by both. A dash is as long as a gap.
// Plain numbers only: this runs a million times for a frame.
function drawLine([x, y], [toX, toY], width, ink, strength, dash) {
  const { pixels } = view;
  const isSteep = Math.abs(toY - y) > Math.abs(toX - x);
  const steps = Math.max(1, Math.ceil(isSteep ? Math.abs(toY - y) : Math.abs(toX - x)));
  const [along, across] = isSteep ? [width, 1] : [1, width];
  const [slopeAlong, slopeAcross] = isSteep ? [(toY - y) / steps, (toX - x) / steps] : [(toX - x) / steps, (toY - y) / steps];
  const [startAlong, startAcross] = isSteep ? [y, x] : [x, y];
  for (let k = 0; k <= steps; k += 1) {
    if (k % (2 * dash) >= dash) { k += dash - 1; continue; }
    const exact = startAcross + slopeAcross * k;
    const lower = Math.floor(exact);
    const place = Math.round(startAlong + slopeAlong * k) * along + lower * across;
    const upper = Math.round(strength * (exact - lower));
    pixels[place] = blended(pixels[place], ink, strength - upper);
    pixels[place + across] = blended(pixels[place + across], ink, upper);
  }
}

// A pixel with ink upon it, of a strength up to 255.
function blended(below, ink, strength) {
  const alpha = below >>> 24;
  if (alpha === 0) return (strength << 24) | ink;
  const rest = 255 - strength;
  const blue = ((below >> 16 & 255) * rest + (ink >> 16 & 255) * strength) >> 8;
  const green = ((below >> 8 & 255) * rest + (ink >> 8 & 255) * strength) >> 8;
  const red = ((below & 255) * rest + (ink & 255) * strength) >> 8;
  return ((alpha > strength ? alpha : strength) << 24) | (blue << 16) | (green << 8) | red;
}

// The part of a line that is on the map, or null.
function inside(from, to, room) {
  let [first, last] = [0, 1];
  for (const axis of [0, 1]) {
    const length = to[axis] - from[axis];
    if (!length && (from[axis] < 0 || from[axis] > room[axis])) return null;
    if (!length) continue;
    const ends = [-from[axis] / length, (room[axis] - from[axis]) / length];
    first = Math.max(first, Math.min(...ends));
    last = Math.min(last, Math.max(...ends));
  }
  if (first > last) return null;
  return [first, last].map((part) => [0, 1].map((axis) => Math.max(0, Math.min(room[axis], from[axis] + part * (to[axis] - from[axis])))));
}

// Pointer and keys

function zoom(px, py, wanted) {
  const factor = Math.max(view.whole / 2, Math.min(view.whole * 500, view.scale * wanted)) / view.scale;
  view.x = px - (px - view.x) * factor;
  view.y = py - (py - view.y) * factor;
  view.scale *= factor;
  moving();
}

function listen() {
  const { canvas, frame, pointers } = view;
  const at = (event) => { const box = frame.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  let touched = null; // where a finger came down, until it moves
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); if (view.places) zoom(...at(event), Math.exp(-event.deltaY / 400)); }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, at(event));
    touched = pointers.size === 1 ? at(event) : null;
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => pointers.delete(event.pointerId));
  canvas.addEventListener("pointerup", () => { if (touched && view.grid) hover(...touched); });
  canvas.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") hide(); });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = at(event);
    if (touched && Math.hypot(x - touched[0], y - touched[1]) < STILL) return;
    touched = null;
    const last = pointers.get(event.pointerId);
    if (!last) { if (view.grid) hover(x, y); return; }
    const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    if (other) zoom(...other, Math.hypot(x - other[0], y - other[1]) / Math.max(Math.hypot(last[0] - other[0], last[1] - other[1]), 1));
    else { view.x += x - last[0]; view.y += y - last[1]; moving(); }
    pointers.set(event.pointerId, [x, y]);
    hide();
  });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[event.key];
    const factor = { "+": 1.25, "=": 1.25, "-": 0.8 }[event.key];
    if (!view.grid) return;
    if (event.key === "Enter") pick();
    else if (event.key === "Escape") hide();
    else if (step) { view.x += step[0]; view.y += step[1]; moving(); }
    else if (factor) zoom(frame.clientWidth / 2, frame.clientHeight / 2, factor);
    else return;
    event.preventDefault();
  });
}

function hide() {
  view.hovered = -1;
  view.card.hidden = true;
}

// The dot nearest the middle says what it is, and comes to the middle.
function pick() {
  const { clientWidth: width, clientHeight: height } = view.frame;
  const row = nearest(width / 2, height / 2, Math.hypot(width, height));
  if (row < 0) return;
  view.x = width / 2 - view.scale * view.places[2 * row];
  view.y = height / 2 - view.scale * view.places[2 * row + 1];
  moving();
  hover(width / 2, height / 2);
}

// The dot under the pointer. One question at a time goes to the server: about where the pointer is by then.
async function hover(px, py) {
  const row = nearest(px, py);
  Object.assign(view, { hovered: row, at: [px, py] });
  if (row < 0) { hide(); return; }
  if (!view.faces.has(row)) {
    if (view.isAsking) return;
    view.isAsking = true;
    try { const face = await get("face", { row }); view?.faces.set(row, face); } catch { return; } finally { if (view) view.isAsking = false; }
    if (view && view.hovered !== row && view.hovered >= 0) { hover(...view.at); return; }
  }
  if (view?.hovered === row) showCard(view.faces.get(row));
}

function showCard(face) {
  const { card, frame, at: [px, py] } = view;
  card.replaceChildren(tile(face), ...(face.kind === "image" ? [element("span", { class: "soft" }, face.id)] : []),
    element("span", { class: "cluster" }, view.names.get(view.cluster[face.row]) ?? ""));
  card.hidden = false;
  const [width, height] = [card.offsetWidth, card.offsetHeight];
  card.style.left = `${Math.max(4, Math.min(px + 14, frame.clientWidth - width - 4))}px`;
  card.style.top = `${Math.max(4, Math.min(py + 14, frame.clientHeight - height - 4))}px`;
}
