// SPDX-License-Identifier: Apache-2.0
// Looks over the page as it is: what is not readable, not named, or wider than the window. Returns a
// list of texts. The tests put it into the page as a function body.

const colourOf = (text) => {
  const n = (text.match(/[\d.]+(e-?\d+)?/g) ?? []).map(Number);
  const unit = text.startsWith("color(") ? 255 : 1;
  return [n[0] * unit, n[1] * unit, n[2] * unit, n.length > 3 ? n[3] : 1];
};

const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);

const light = (c) => {
  const [r, g, b] = c.map((v) => {
    const s = v / 255;
    return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};

const ratio = (a, b) => {
  const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
  return (x + 0.05) / (y + 0.05);
};

// What is painted behind an element: the backgrounds of its ancestors, the boxes of a diagram.
function behind(element) {
  const layers = [];
  for (let e = element; e; e = e.parentElement) {
    layers.push(colourOf(getComputedStyle(e).backgroundColor));
    const box = e.querySelector?.(":scope > rect.box");
    if (box) {
      layers.push(colourOf(getComputedStyle(box).fill));
    }
    if (layers.at(-1)[3] === 1) {
      break;
    }
  }
  return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
}

const isSeen = (e) => e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) &&
  !e.closest(".unseen, .skip, [hidden]");

function contrasts() {
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    const text = walk.currentNode.data.trim();
    if (text === "" || !isSeen(e) || e.closest("title, option, button:disabled")) {
      continue;
    }
    const style = getComputedStyle(e);
    const isSvg = e.namespaceURI.endsWith("svg");
    const back = behind(e);
    const ink = over(colourOf(isSvg ? style.fill : style.color), back);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    if (ratio(ink, back) < least - 0.01) {
      found.push(`contrast ${ratio(ink, back).toFixed(2)} of "${text.slice(0, 40)}" in ${e.className}`);
    }
  }
  return found;
}

function names() {
  return [...document.querySelectorAll("a, button, input, select, textarea, [role=img], [role=meter]")]
    .filter(isSeen).filter((e) => {
      const label = e.getAttribute("aria-label") ?? e.labels?.[0]?.innerText ?? e.textContent;
      return label.trim() === "";
    }).map((e) => `no name: ${e.outerHTML.slice(0, 100)}`);
}

function structure() {
  const found = [];
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  if (new Set(ids).size !== ids.length) {
    found.push(`an id is used twice: ${ids}`);
  }
  if (document.querySelectorAll("main").length !== 1 || document.querySelectorAll("h1").length !== 1) {
    found.push("there is not exactly one main and one h1");
  }
  if (document.documentElement.scrollWidth > innerWidth) {
    found.push(`wider than the window: ${document.documentElement.scrollWidth} > ${innerWidth}`);
  }
  return found;
}

return [...contrasts(), ...names(), ...structure()];
