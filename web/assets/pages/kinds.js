import { h } from "../dom.js";
export const kinds = { title: () => "kinds", topics: [], load: async () => ({}), draw: () => h("h1", null, "kinds") };
