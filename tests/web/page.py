# SPDX-License-Identifier: Apache-2.0
"""A browser on the page of claimd-web, and requests to its API beside it."""

import json
import os
import urllib.error
import urllib.request

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

WAIT_S = 30
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
         "--no-first-run", "--disable-background-networking", "--lang=en")


CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
DRIVER = os.environ.get("CHROMEDRIVER", "/usr/bin/chromedriver")

# The button with this text or label, within the elements that a selector matches.
FIND_BUTTON = """
    const [text, within] = arguments;
    const found = [...document.querySelectorAll(`${within} button, ${within} a.button`)]
        .find((b) => (b.getAttribute("aria-label") ?? b.innerText).trim() === text);
"""


def is_there():
    return os.path.exists(CHROMIUM) and os.path.exists(DRIVER)


class Api:
    """The API with a token."""

    def __init__(self, url, token):
        self.url = url.rstrip("/") + "/api/v1/"
        self.token = token

    def ask(self, method, path, body=None, **headers):
        """Returns (status, the JSON of the answer)."""
        request = urllib.request.Request(self.url + path, method=method,
                                         data=None if method == "GET" else json.dumps(body or {}).encode())
        request.add_header("Authorization", "Bearer " + self.token)
        request.add_header("Content-Type", "application/json")
        for name, value in headers.items():
            request.add_header(name.replace("_", "-"), value)
        try:
            with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def enqueue(self, kind, args=None, **more):
        status, answer = self.ask("POST", "jobs", {"kind": kind, "args": args or {}, **more})
        assert status == 200, answer
        return answer["job"]["id"]

    def job(self, job_id):
        status, answer = self.ask("GET", f"jobs/{job_id}")
        assert status == 200, answer
        return answer["job"]


class Page:
    """The page in a browser without a window."""

    def __init__(self, url):
        self.url = url.rstrip("/") + "/"
        options = Options()
        for flag in FLAGS:
            options.add_argument(flag)
        options.binary_location = CHROMIUM
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(DRIVER), options=options)
        self.resize(1280, 900)

    def close(self):
        self.driver.quit()

    def cdp(self, command, **args):
        return self.driver.execute_cdp_cmd(command, args)

    def resize(self, width, height=900):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                 mobile=width < 500)

    def scheme(self, name):
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name},
                                                         {"name": "prefers-reduced-motion", "value": "reduce"}])

    def js(self, script, *args):
        return self.driver.execute_script(script, *args)

    def until(self, what, condition):
        """Waits until condition() is true; returns its value. Every change of the page may make it so."""
        return WebDriverWait(self.driver, WAIT_S, poll_frequency=0.05).until(lambda _: condition(), what)

    def log_in(self, token):
        self.driver.get("about:blank")
        self.driver.get(self.url + "#token=" + token)
        self.until("the page after the login", lambda: self.find(".frame"))
        assert "token" not in self.driver.current_url, self.driver.current_url

    def go(self, hash_):
        """Goes to a place, and waits until what it shows has been read."""
        self.js("location.hash = arguments[0]", hash_)
        self.settle()

    def settle(self):
        self.until("the contents", lambda: self.js(
            "return document.querySelector('main')?.dataset.shown === location.hash"))

    def hash(self):
        return self.js("return location.hash")

    def text(self):
        return self.js("return document.body.innerText")

    def find(self, css):
        found = self.driver.find_elements(By.CSS_SELECTOR, css)
        return found[0] if found else None

    def all(self, css):
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def click(self, text, within="body"):
        """Clicks such a button as soon as it is there and enabled. In one step, as the page is redrawn all the time."""
        self.until(f"the button {text}", lambda: self.js(
            FIND_BUTTON + "if (!found || found.disabled) return false; found.click(); return true", text, within))

    def focus(self, text, within="body"):
        self.until(f"the button {text}", lambda: self.js(
            FIND_BUTTON + "found?.focus(); return found !== undefined", text, within))

    def rows(self):
        return self.js("return [...document.querySelectorAll('main tr[data-row]')].map(r => r.dataset.row)")

    def state_of_row(self, key):
        return self.js("""
            return document.querySelector(`main tr[data-row="${arguments[0]}"] .mark`)?.innerText.trim()""", str(key))

    def press(self, *keys):
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()


__all__ = ["Api", "Keys", "Page", "is_there"]
