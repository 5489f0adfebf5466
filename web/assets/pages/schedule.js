import { h } from "../dom.js";
export const schedule = { title: () => "schedule", topics: [], load: async () => ({}), draw: () => h("h1", null, "schedule") };
