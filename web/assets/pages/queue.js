import { h } from "../dom.js";
export const queue = { title: () => "queue", topics: [], load: async () => ({}), draw: () => h("h1", null, "queue") };
