#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of docs/images: runs a private cluster with the handlers of a shop, lets it work for a while, and
takes a picture of each page in both themes.

pictures.py BIN [DIR]     BIN: the folder of claimctl and claimd-web; DIR: where to put them, else docs/images"""

import base64
import math
import os
import random
import shutil
import subprocess
import sys
import threading

from api import Api
from cluster import OPERATOR, Cluster
from page import Page

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
QUEUES = ["default", "mail", "billing", "media", "reports"]
WORK_S = 850     # almost all of the 15 minutes that Overview shows
SEEN_S = 90      # how long the page has been open by then: the courses of Queues
RUSH = 600       # jobs that are suddenly due before the picture of Overview …
RUSH_S = 4       # … and how long before it
BYTES_MAX = 150_000
KINDS = {"mail_send": {"timeout": "30s"}, "invoice_render": {"timeout": "1m"}, "thumbnail": {"timeout": "2m"},
         "webhook_post": {"timeout": "30s", "max_attempts": 8}, "report_build": {"timeout": "1h"}}
SCHEDULES = [("nightly_report", "report_build", "30 2 * * *", ["--zone", "Europe/Berlin", "--queue", "reports"]),
             ("stock_hook", "webhook_post", "*/15 * * * *", []), ("month_end", "invoice_render", "0 6 1 * *", []),
             ("digest", "mail_send", "0 8-18/2 * * mon-fri", ["--zone", "America/New_York", "--queue", "mail"])]


def thumbnail(number):
    return {"kind": "thumbnail", "queue": "media", "args": {"path": f"uploads/{number}.mov"}}


def jobs_of_a_second(second):
    """What the shop has to do in this second: more or less of it, as in a day."""
    n = 14 + round(9 * math.sin(second / 70)) + random.randrange(4)
    made = [{"kind": "mail_send", "queue": "mail", "args": {"to": f"customer{i}@example.org"}} for i in range(n)]
    made += [{"kind": "invoice_render", "queue": "billing", "args": {"order": 47110 + second * 4 + i}}
             for i in range(4)]
    made += [thumbnail(second * 6 + i) for i in range(5)]
    made += [{"kind": "webhook_post", "args": {"url": f"https://hooks.example.com/{i}"}} for i in range(3)]
    return made


def seed(cluster, api):
    for name, kind, cron, more in SCHEDULES:
        cluster.ctl("schedules", "set", name, kind, cron, *more)
    for pages in (700, 800):
        api.enqueue("report_build", {"pages": pages, "month": "2026-10"}, queue="reports", tags=["month", "eu"])
    api.enqueue("mail_send", {"to": "all@example.org"}, queue="mail", delay="2h")


def feed(api, stopped):
    second = 0
    while not stopped.wait(1):
        second += 1
        api.ask("POST", "jobs/many", {"jobs": jobs_of_a_second(second)})


def picture(page, directory, name, height):
    page.resize(1280, height)
    page.settle()
    shot = page.cdp("Page.captureScreenshot", format="png", optimizeForSpeed=False)
    path = os.path.join(directory, name + ".png")
    with open(path, "wb") as file:
        file.write(base64.b64decode(shot["data"]))
    subprocess.run(["pngquant", "--force", "--skip-if-larger", "--ext", ".png", path], check=False)
    assert os.path.getsize(path) <= BYTES_MAX, f"{path} has more than {BYTES_MAX} bytes"
    print(path, os.path.getsize(path))


def places(api):
    report = api.ask("GET", "jobs?kind=report_build&state=running&limit=1")[1]["jobs"][0]["id"]
    return [("overview", "#/", 1400), ("jobs", "#/jobs?state=retryable,discarded", 900), ("job", f"#/jobs/{report}", 1180),
            ("queues", "#/queues", 560), ("schedules", "#/schedules", 480), ("kinds", "#/kinds", 560),
            ("cluster", "#/cluster", 800)]


def shop():
    """The cluster of the pictures."""
    handlers = {"command": ["/usr/bin/python3", os.path.join(HERE, "shop.py")], "kinds": KINDS,
                "env": {"PYTHONPATH": os.path.join(ROOT, "sdk/python")}}
    return Cluster(sys.argv[1], workers=3, handlers=handlers, login="postgres",  # doctor can do all its checks
                   env={"CLAIMD_WORKER_QUEUES": ",".join(QUEUES), "CLAIMD_WORKER_SLOTS": "8"},
                   web={"cluster_name": "production", "cluster_colour": "#b4236a",
                        "assets_dir": os.path.join(ROOT, "web/assets")})


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    if shutil.which("pngquant") is None:
        sys.exit("pictures.py: pngquant is not installed: apt-get install pngquant")
    directory = sys.argv[2] if len(sys.argv) == 3 else os.path.join(ROOT, "docs/images")
    cluster = shop()
    stopped = threading.Event()
    try:
        api = Api(cluster.url, OPERATOR)
        seed(cluster, api)
        threading.Thread(target=feed, args=(api, stopped), daemon=True).start()
        stopped.wait(WORK_S - SEEN_S)
        page = Page(cluster.url)
        page.log_in(OPERATOR)
        stopped.wait(SEEN_S)
        for name, place, height in places(api):
            page.go(place)
            if name == "overview":
                api.ask("POST", "jobs/many", {"jobs": [thumbnail(i) for i in range(RUSH)]})
                stopped.wait(RUSH_S)
            for scheme in ("light", "dark"):
                page.scheme(scheme)
                picture(page, directory, f"web-{name}-{scheme}", height)
        page.close()
    finally:
        stopped.set()
        cluster.stop()


if __name__ == "__main__":
    main()
