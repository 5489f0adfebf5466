import { h } from "../dom.js";
export const cluster = { title: () => "cluster", topics: [], load: async () => ({}), draw: () => h("h1", null, "cluster") };
