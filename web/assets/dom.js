// SPDX-License-Identifier: Apache-2.0
// A small virtual DOM. Strings become text nodes and nothing else: no data is ever parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

// h("button.primary", {onclick: act}, "Retry"). A prop that begins with "on" is a handler, `style`
// is an object of CSS properties, `key` identifies a node among its siblings. Props and children that
// are false, null or undefined are left out.
export function h(name, props, ...children) {
  const [tag, ...classes] = name.split(".");
  const given = props ?? {};
  if (given.class) {
    classes.push(given.class);
  }
  return {
    tag,
    key: given.key,
    props: { ...given, class: classes.join(" ") || null, key: null },
    children: children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false),
  };
}

// Patches the children of `root`; nodes that stay keep focus, scroll position and selection.
export function render(root, ...nodes) {
  patchChildren(root, nodes.flat(Infinity).filter((n) => n !== null && n !== undefined && n !== false));
}

function create(node, parent) {
  if (typeof node !== "object") {
    return document.createTextNode(String(node));
  }
  const isSvg = node.tag === "svg" ||
    (parent.namespaceURI === SVG && parent.tagName !== "foreignObject");
  const made = isSvg ? document.createElementNS(SVG, node.tag) : document.createElement(node.tag);
  made.shown = { tag: node.tag, key: node.key, props: {} };
  patch(made, node);
  return made;
}

function isSame(dom, node) {
  if (typeof node !== "object") {
    return dom.nodeType === Node.TEXT_NODE;
  }
  return dom.shown?.tag === node.tag && dom.shown.key === node.key;
}

function patch(dom, node) {
  if (typeof node !== "object") {
    if (dom.data !== String(node)) {
      dom.data = String(node);
    }
    return;
  }
  const before = dom.shown.props;
  for (const name of new Set([...Object.keys(before), ...Object.keys(node.props)])) {
    if (before[name] !== node.props[name] || name === "value" || name === "checked") {
      setProp(dom, name, node.props[name], before[name]);
    }
  }
  dom.shown.props = node.props;
  if (!node.props.own) { // `own`: its children are managed elsewhere
    patchChildren(dom, node.children);
  }
  node.props.ref?.(dom);
}

function setProp(dom, name, value, before) {
  if (name === "ref" || name === "own") {
    return;
  }
  if (name.startsWith("on")) {
    dom[name] = value ?? null;
  } else if (name === "style") {
    setStyle(dom, value ?? {}, before ?? {});
  } else if (name === "value" || name === "checked" || name === "indeterminate") {
    // Never overwrite a field while the user is typing in it.
    if (value !== undefined && dom[name] !== value && document.activeElement !== dom) {
      dom[name] = value;
    } else if (name !== "value" && value !== undefined) {
      dom[name] = value;
    }
  } else if (value === null || value === undefined || value === false) {
    dom.removeAttribute(name);
  } else {
    dom.setAttribute(name, value === true ? "" : value);
  }
}

function setStyle(dom, style, before) {
  for (const name of Object.keys(before)) {
    if (!(name in style)) {
      dom.style.removeProperty(name);
    }
  }
  for (const [name, value] of Object.entries(style)) {
    dom.style.setProperty(name, value);
  }
}

function patchChildren(parent, nodes) {
  const keyed = new Map();
  for (const child of parent.childNodes) {
    if (child.shown?.key !== undefined) {
      keyed.set(child.shown.key, child);
    }
  }
  let at = parent.firstChild;
  for (const node of nodes) {
    let dom = node.key === undefined ? at : keyed.get(node.key);
    if (dom && isSame(dom, node)) {
      if (dom === at) {
        at = at.nextSibling;
      } else {
        parent.insertBefore(dom, at);
      }
      patch(dom, node);
    } else {
      dom = create(node, parent);
      parent.insertBefore(dom, at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}
