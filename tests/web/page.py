# SPDX-License-Identifier: Apache-2.0
"""A browser on the page of claimd-web."""

import os
import sys
import unittest

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


def require_browser():
    """Ends the program with exit code 77, which means skipped, if there is no browser."""
    if not (os.path.exists(CHROMIUM) and os.path.exists(DRIVER)):
        print("skipped: no chromium or chromedriver")
        sys.exit(77)


def run_tests(options, cluster=None):
    """Runs the tests of the main module with unittest's options, and stops the cluster. Returns the exit code."""
    try:
        return int(not unittest.main(argv=[sys.argv[0], *options], exit=False).result.wasSuccessful())
    finally:
        if cluster:
            cluster.stop()


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
