// SPDX-License-Identifier: Apache-2.0
// The head of a detail page: breadcrumb, state, actions.
import { h } from "../dom.js";
import { href } from "../route.js";
import { mark } from "../state.js";

export function crumbHead(page, pageText, name, { state, stateText, tools } = {}) {
  return h("div.page-head", null,
    h("h1", null, h("a.back", { href: href(page) }, pageText), h("span.quiet", null, " / "), name),
    state && chip(state, stateText), tools && h("div.row.push", null, tools));
}

export function chip(state, text) {
  const m = mark(state, { text });
  return h("span.mark.chip", { style: m.props.style, title: m.props.title }, m.children);
}
