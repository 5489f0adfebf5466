import { h } from "../dom.js";
export const kind = { title: () => "kind", topics: [], load: async () => ({}), draw: () => h("h1", null, "kind") };
