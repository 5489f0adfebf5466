// SPDX-License-Identifier: Apache-2.0
// The event stream. If it fails, polls every 5 s and tries the stream again later. Calls send() with
// {mode}, {counters} or {topics}.

const POLL_MS = 5000;
const GRACE_MS = 5000; /* for EventSource's own reconnect */
const AGAIN_MS = 20000;
const TOPICS = ["jobs", "queues", "workers", "schedulers"];

export function createStream(base, send) {
  let source = null;
  let poll = null;
  let timer = null;

  function stop() {
    source?.close();
    source = null;
    clearInterval(poll);
    clearTimeout(timer);
    poll = timer = null;
  }

  function start() {
    if (source || poll) {
      return;
    }
    source = new EventSource(`${base}events`);
    source.onopen = () => {
      clearTimeout(timer);
      timer = null;
      send({ mode: "live" });
    };
    source.addEventListener("counters", (e) => send({ counters: JSON.parse(e.data) }));
    source.addEventListener("changed", (e) => send({ topics: JSON.parse(e.data).topics }));
    source.onerror = () => {
      const isClosed = source.readyState === EventSource.CLOSED;
      timer ??= setTimeout(startPolling, isClosed ? 0 : GRACE_MS);
    };
  }

  function startPolling() {
    stop();
    poll = setInterval(ask, POLL_MS);
    timer = setTimeout(() => {
      stop();
      start();
    }, AGAIN_MS);
    ask();
  }

  async function ask() {
    try {
      const answer = await fetch(`${base}overview`, { credentials: "same-origin" });
      if (!answer.ok) {
        send({ mode: answer.status === 401 ? "login" : "lost" });
        return;
      }
      const counters = await answer.json();
      if (poll) {
        send({ mode: "polling" });
        send({ counters });
        send({ topics: TOPICS });
      }
    } catch {
      send({ mode: "lost" });
    }
  }

  return { start, stop };
}
