// SPDX-License-Identifier: Apache-2.0
// The application: session, routing, loading and drawing.
import { h, render } from "./dom.js";
import { act, get, whenUnauthorized } from "./api.js";
import { live, restartLive, startLive } from "./live.js";
import { startKeys } from "./keys.js";
import { applyTheme, onPrefs } from "./prefs.js";
import { route } from "./route.js";
import { frame } from "./frame.js";
import { loginPage } from "./pages/login.js";
import { toast } from "./ui/notice.js";
import { failure, skeleton } from "./ui/waiting.js";

const LISTS = ["overview", "jobs", "queues", "schedules", "kinds", "cluster"];
const DETAILS = { jobs: "job", queues: "queue", schedules: "schedule", kinds: "kind" };
const RELOAD_MIN_MS = 1000;
const MOVES_MS = 2000;
const AGES_MS = 5000; /* how often ages such as "5 s ago" are redrawn */

// view.state: what a page remembers until the user leaves it; shown: the hash whose data is shown.
const view = { session: null, at: null, page: null, data: null, error: null, state: {}, readAt: 0,
  needsLogin: false };
let loading = null;
let reloadTimer = null;
let moveTimer = null;
let isDrawAsked = false;

const context = {
  get session() { return view.session; },
  get params() { return view.at.params; },
  get id() { return view.at.id; },
  get state() { return view.state; },
  get isStale() { return loading !== null && view.data !== null; },
  live,
  reload,
  redraw,
};

function redraw() {
  if (!isDrawAsked) {
    isDrawAsked = true;
    requestAnimationFrame(() => {
      isDrawAsked = false;
      draw();
    });
  }
}

function draw() {
  const root = document.getElementById("app");
  if (!view.session) {
    render(root, view.error ? h("main", null, failure(view.error, start)) : h("main", null, skeleton()));
  } else if (view.needsLogin) {
    render(root, loginPage(view.session, enter));
  } else if (view.page) {
    render(root, frame({ at: view.at, session: view.session, live, leave },
      h("main", { id: "main", tabindex: "-1", key: `${view.at.page}/${view.at.id}`,
        "data-shown": view.shown }, contents())));
  }
}

function contents() {
  document.title = `${view.page.title(view.at)} · ${view.session.cluster || "claimd"}`;
  if (view.data === null) {
    return view.error ? [view.page.drawHead?.(context), failure(view.error, reload)] : skeleton();
  }
  return [view.error && failure(view.error, reload), view.page.draw(view.data, context)];
}

// Loads the data of the page. A newer call replaces an older one.
async function load() {
  clearTimeout(reloadTimer);
  clearTimeout(moveTimer);
  reloadTimer = null;
  loading?.abort();
  const mine = new AbortController();
  loading = mine;
  const began = performance.now();
  const hash = location.hash;
  try {
    const data = await view.page.load(context, mine.signal);
    if (loading === mine) {
      view.data = data;
      view.error = null;
    }
  } catch (error) {
    if (loading === mine && error.name !== "AbortError") {
      view.error = error;
    }
  }
  if (loading === mine) {
    loading = null;
    view.shown = hash;
    view.readAt = performance.now();
    view.took = view.readAt - began;
    if (view.data && live.mode !== "off" && view.page.moves?.(view.data)) { // no hint tells of it
      moveTimer = setTimeout(() => live.mode !== "off" && reloadSoon(), MOVES_MS);
    }
    redraw();
  }
}

function reload() {
  load();
}

// After a hint: soon, but less often if answers are slow.
function reloadSoon() {
  const rest = Math.max(RELOAD_MIN_MS, 4 * (view.took ?? 0));
  reloadTimer ??= setTimeout(() => {
    reloadTimer = null;
    if (loading) {
      reloadSoon();
    } else {
      load();
    }
  }, Math.max(0, view.readAt + rest - performance.now()));
}

// The module of a page is fetched on the first visit.
async function pageAt({ page, id }) {
  const name = id === null ? LISTS.find((n) => n === page) : DETAILS[page];
  const known = name ?? "overview";
  return (await import(`./pages/${known}.js`))[known];
}

async function arrive() {
  if (!view.session || view.needsLogin) {
    return;
  }
  const at = route();
  const hash = location.hash;
  let page;
  try {
    page = await pageAt(at);
  } catch {
    toast("fail", "The server is not responding.", "The page could not be loaded.");
    return;
  }
  if (hash === location.hash) {
    show(at, page);
  }
}

function show(at, page) {
  const isSame = page === view.page && at.id === view.at?.id;
  view.at = at;
  view.page = page;
  view.error = null;
  if (!isSame) {
    view.data = null;
    view.state = {};
    scrollTo(0, 0);
  }
  draw();
  if (!isSame) {
    document.getElementById("main").focus({ preventScroll: true });
  }
  load();
}

function hear(message) {
  if (message.mode === "login") {
    view.needsLogin = view.session?.login ?? false;
  }
  if (message.topics && view.page && !view.needsLogin) {
    const isMine = message.topics.some((t) => t === "all" || view.page.topics.includes(t));
    if (isMine) {
      reloadSoon();
    }
  }
  redraw();
}

async function enter(token) {
  const { session } = await act("POST", "login", { token });
  welcome(session);
}

async function leave() {
  const { session } = await act("POST", "logout", {});
  view.page = null;
  welcome(session);
}

function welcome(session) {
  view.session = session;
  view.needsLogin = session.role === "none";
  if (session.colour && CSS.supports("color", session.colour)) {
    document.documentElement.style.setProperty("--cluster", session.colour);
  }
  if (view.needsLogin) {
    draw();
  } else {
    arrive();
    if (view.isLive) {
      restartLive();
    } else {
      view.isLive = true;
      startLive(hear);
    }
  }
}

// #token=… logs in; it is removed from the URL at once.
async function start() {
  const token = location.hash.match(/^#token=(.+)$/)?.[1];
  if (token) {
    history.replaceState(null, "", location.pathname);
  }
  try {
    const answer = token ? await act("POST", "login", { token: decodeURIComponent(token) })
      : await get("session");
    welcome(answer.session);
  } catch (error) {
    if (token) {
      start();
    } else {
      view.error = error;
      draw();
    }
  }
}

applyTheme();
onPrefs(redraw);
whenUnauthorized(() => {
  view.needsLogin = view.session !== null;
  redraw();
});
addEventListener("hashchange", arrive);
document.querySelector(".skip").addEventListener("click", (e) => {
  e.preventDefault(); // the hash is the route
  document.getElementById("main").focus();
});
startKeys({ reload });
setInterval(() => document.visibilityState === "visible" && live.mode !== "off" && redraw(), AGES_MS);
start();
