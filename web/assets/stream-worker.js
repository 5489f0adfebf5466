// SPDX-License-Identifier: Apache-2.0
// One stream for all tabs, because browsers open at most six connections per server.
import { createStream } from "./stream.js";

const watching = new Set();
let last = {};

const stream = createStream(new URL("../api/v1/", import.meta.url).href, (message) => {
  last = { ...last, ...message, topics: undefined };
  watching.forEach((port) => port.postMessage(message));
});

self.onconnect = ({ ports: [port] }) => {
  port.onmessage = ({ data }) => {
    if (data === "watch") {
      watching.add(port);
      stream.start();
      port.postMessage(last);
    } else {
      watching.delete(port);
      if (watching.size === 0) {
        stream.stop();
      }
    }
  };
};
