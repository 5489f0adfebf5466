import { h } from "../dom.js";
export const schedules = { title: () => "schedules", topics: [], load: async () => ({}), draw: () => h("h1", null, "schedules") };
