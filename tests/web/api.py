# SPDX-License-Identifier: Apache-2.0
"""Requests to the API of claimd-web."""

import json
import urllib.error
import urllib.request

WAIT_S = 60


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
