// Elements without HTML: whatever comes from the data is text.

export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") made.className = value;
    else if (name === "dataset") Object.assign(made.dataset, value);
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name.includes("-") || name === "role" || name === "for") made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export const button = (text, onclick, properties = {}) =>
  element("button", { type: "button", onclick, ...properties }, text);

const SVG = "http://www.w3.org/2000/svg";
export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function say(text) {
  const status = document.getElementById("status");
  if (status.textContent !== text) status.textContent = text; // what stays is not read out again
  clearTimeout(say.timer);
  say.timer = setTimeout(() => { status.textContent = ""; }, 4000);
}
