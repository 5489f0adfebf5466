# SPDX-License-Identifier: Apache-2.0
"""The handlers of a shop, for pictures of the page: quick, slow, flaky and failing ones."""

import random
import time

import claimd


def pause(at_least_s, at_most_s):
    time.sleep(random.uniform(at_least_s, at_most_s))


@claimd.job("mail_send")
def mail_send(job):
    pause(0.02, 0.12)
    if random.random() < 0.02:
        print(f"MX of {job.args['to']}: mx1.example.org\n451 4.7.1 greylisted")
        raise claimd.Retry(60, "451 4.7.1 greylisted, try again later")
    return {"message_id": f"<{job.id}@shop.example.org>"}


@claimd.job("invoice_render")
def invoice_render(job):
    pause(0.1, 0.4)
    return {"pdf": f"invoices/{job.args['order']}.pdf", "pages": 2}


@claimd.job("thumbnail")
def thumbnail(job):
    pause(0.1, 0.5)
    if job.args["path"].endswith("7.mov"):
        print("probing", job.args["path"])
        print("moov atom not found")
        raise claimd.Fail("ffmpeg: moov atom not found")
    return {"path": job.args["path"] + ".webp"}


@claimd.job("webhook_post")
def webhook_post(job):
    pause(0.03, 0.1)
    if random.random() < 0.04:
        print(f"POST {job.args['url']}\n< 503 Service Unavailable")
        raise claimd.Retry("HTTP 503 from " + job.args["url"])
    return {"status": 204}


@claimd.job("report_build")
def report_build(job):
    pages = job.args["pages"]
    if job.attempt == 1 and not job.checkpoint:
        job.save({"page": 40})
        print("page 40: the connection to the warehouse was closed")
        raise claimd.Retry(3, "the connection to the warehouse was closed")
    for page in range(job.checkpoint["page"], pages):
        if job.should_stop:
            raise claimd.Snooze(1, "stopped on page " + str(page))
        job.progress(100 * page // pages, f"page {page} of {pages}")
        if page % 10 == 0:
            job.save({"page": page})
            print("page", page)
        time.sleep(1.5)
    return {"pages": pages}


claimd.main()
