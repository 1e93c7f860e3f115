/* The map tells about the dot that is pointed at, tapped, or reached with the arrow keys. All text stays text. */
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("map-data").textContent);
  const [map, ring, told] = ["map", "map-ring", "map-told"].map((id) => document.getElementById(id));
  const paths = [...map.querySelectorAll(".points path")];
  const buttons = [...document.querySelectorAll(".map-legend button")];
  const REACH = 24; /* how far from a dot it still counts as pointed at */
  const HINT = "Point at a dot, or go from dot to dot with the arrow keys. A number in the list shows its cluster alone.";
  let chosen = null;
  let current = -1;
  let sheet = null;
  if (data.sheet) {
    sheet = new Image();
    sheet.src = data.sheet;
  }

  const isShown = (k) => chosen === null || data.cluster[k] === chosen;

  function element(tag, name, text) {
    const made = document.createElement(tag);
    made.className = name;
    made.textContent = text;
    return made;
  }

  function picture(k) {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 128;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", data.name[k]);
    const x = (k % data.across) * 32;
    const y = Math.floor(k / data.across) * 32;
    const draw = () => canvas.getContext("2d").drawImage(sheet, x, y, 32, 32, 0, 0, 128, 128);
    sheet.complete ? draw() : sheet.addEventListener("load", draw);
    return canvas;
  }

  function tell(k) {
    if (k === current) return;
    current = k;
    ring.setAttribute("visibility", k < 0 ? "hidden" : "visible");
    if (k < 0) return told.replaceChildren(element("p", "hint", HINT));
    ring.setAttribute("cx", data.x[k]);
    ring.setAttribute("cy", data.y[k]);
    const parts = [element("p", "id", data.name[k])];
    const where = element("p", `where k${data.cluster[k] % 10}`, "");
    where.append(element("span", "number", data.cluster[k]), ` ${data.sure[k]} % sure`);
    if (data.label && data.label[k]) where.append(`, labelled ${data.label[k]}`);
    parts.push(where);
    if (sheet) parts.push(picture(k));
    if (data.text && data.text[k]) {
      const text = element("p", "excerpt", data.text[k]);
      text.dir = "auto";
      parts.push(text);
    }
    told.replaceChildren(...parts);
  }

  /* The dot with the least cost, or −1. */
  function best(cost) {
    let found = -1;
    let least = Infinity;
    for (let k = 0; k < data.x.length; k++) {
      const own = isShown(k) ? cost(k) : Infinity;
      if (own < least) [found, least] = [k, own];
    }
    return found;
  }

  function nearest(event) {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(map.getScreenCTM().inverse());
    const reach = REACH * REACH;
    return best((k) => {
      const square = (data.x[k] - place.x) ** 2 + (data.y[k] - place.y) ** 2;
      return square < reach ? square : Infinity;
    });
  }

  /* The next dot to one side: near, and rather straight ahead. */
  function beside(x, y) {
    if (current < 0) return best((k) => (data.x[k] - 300) ** 2 + (data.y[k] - 300) ** 2);
    const next = best((k) => {
      const [dx, dy] = [data.x[k] - data.x[current], data.y[k] - data.y[current]];
      const ahead = dx * x + dy * y;
      const aside = Math.abs(dx * y - dy * x);
      return ahead > 0.5 && aside <= ahead ? ahead + 2 * aside : Infinity;
    });
    return next < 0 ? current : next;
  }

  function show(cluster) {
    chosen = chosen === cluster ? null : cluster;
    for (const path of paths) path.classList.toggle("quiet", chosen !== null && Number(path.dataset.cluster) !== chosen);
    for (const button of buttons) button.setAttribute("aria-pressed", Number(button.dataset.cluster) === chosen);
    tell(-1);
  }

  const SIDES = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
  map.setAttribute("tabindex", "0");
  map.setAttribute("role", "application");
  map.setAttribute("aria-describedby", "map-told");
  for (const kind of ["pointermove", "pointerdown"]) {
    map.addEventListener(kind, (event) => {
      const k = nearest(event);
      if (k >= 0) tell(k); /* beside the dots, the last one stays to be read */
    });
  }
  map.addEventListener("keydown", (event) => {
    if (event.key === "Escape") tell(-1);
    if (!(event.key in SIDES)) return;
    event.preventDefault();
    tell(beside(...SIDES[event.key]));
  });
  for (const button of buttons) button.addEventListener("click", () => show(Number(button.dataset.cluster)));
  current = null;
  tell(-1);
})();
