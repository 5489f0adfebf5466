import { h } from "../dom.js";
export const queues = { title: () => "queues", topics: [], load: async () => ({}), draw: () => h("h1", null, "queues") };
