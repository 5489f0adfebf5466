# SPDX-License-Identifier: Apache-2.0
"""A cluster of claimctl dev with claimd-web before it, which acts as a login of role claimd_web and no more."""
import http.client
import json
import os
import re
import signal
import subprocess
import tempfile
import time

try:
    import jsonschema
except ImportError:
    jsonschema = None

BIN = os.environ["CLAIMD_BIN_DIR"]
READER = "reader-of-the-tests-0001"
OPERATOR = "operator-of-the-tests-01"
LIMIT_S = 120


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        return self.json["error"]["code"]


def read(path):
    with open(path) as file:
        return file.read()


def until(what, check):
    """Waits until check() is true."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        found = check()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited too long for: {what}")


class Web:
    """One claimd-web."""

    def __init__(self, world, **env):
        self.log = tempfile.NamedTemporaryFile(dir=world.dir, suffix=".log", delete=False)
        all_env = dict(os.environ, CLAIMD_CONFIG=world.config, CLAIMD_POSTGRES_CONNINFO=world.conninfo("web_login"),
                       CLAIMD_WEB_LISTEN="127.0.0.1:0", CLAIMD_WEB_TOKENS_FILE=world.tokens, CLAIMD_WEB_MODE="operate")
        all_env.update({key if key.startswith("CLAIMD_") else "CLAIMD_WEB_" + key.upper(): value for key, value in env.items()})
        self.process = subprocess.Popen([f"{BIN}/claimd-web"], env=all_env, stderr=self.log)
        line = until("claimd-web is ready", self._ready)
        self.scheme, self.host, self.port = re.search(r"http=(https?)://([^:]+):(\d+)", line).groups()
        self.port = int(self.port)

    def _ready(self):
        text = self.output()
        assert self.process.poll() is None, text
        return next((line for line in text.splitlines() if "event=ready" in line), None)

    def output(self):
        return read(self.log.name)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(LIMIT_S)
        self.log.close()
        assert code == 0, f"exit {code}: {self.output()}"

    def request(self, method, path, body=None, token=OPERATOR, headers=None, raw=None, length=None):
        """`length`: what Content-Length says, in place of a body."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=LIMIT_S)
        all_headers = {"Host": f"{self.host}:{self.port}"}
        if token:
            all_headers["Authorization"] = "Bearer " + token
        if method not in ("GET", "HEAD"):
            all_headers["Content-Type"] = "application/json"
        all_headers.update(headers or {})
        all_headers = {name: value for name, value in all_headers.items() if value is not None}
        data = raw if raw is not None else json.dumps(body).encode() if body is not None else None
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in all_headers.items():
            connection.putheader(name, value)
        if data is not None or method not in ("GET", "HEAD"):
            connection.putheader("Content-Length", str(length or len(data or b"")))
        connection.endheaders(None if length else data)
        answer = connection.getresponse()
        reply = Reply(answer.status, answer.headers, answer.read())
        connection.close()
        return reply

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.request("POST", path, {} if body is None else body, **more)


class World:
    def __init__(self):
        self.dir = os.path.realpath(tempfile.mkdtemp(prefix="web-"))
        os.chmod(self.dir, 0o755)
        self.dev = f"{self.dir}/dev"
        self.config = f"{self.dev}/claimd.json"
        self.tokens = f"{self.dir}/tokens"
        self.log = open(f"{self.dir}/dev.log", "w+")
        self.cluster = subprocess.Popen([f"{BIN}/claimctl", "dev", "--dir", self.dev, "--workers", "1", "--masters", "3"],
                                        stdout=self.log, stderr=subprocess.STDOUT)
        until("claimctl dev is ready", self._is_up)
        self.write_tokens(f"# who may\noperator anna {OPERATOR}\n\nreader bob {READER}\n")
        self.sql("CREATE ROLE web_login LOGIN IN ROLE claimd_web")

    def _is_up(self):
        text = read(self.log.name)
        assert self.cluster.poll() is None, text
        return "Ctrl-C stops everything" in text

    def write_tokens(self, text):
        with open(self.tokens, "w") as file:
            os.chmod(self.tokens, 0o640)
            file.write(text)

    def conninfo(self, user):
        return f"host={self.dev} port=5432 user={user} dbname=claimd"

    def sql(self, text, user="postgres"):
        done = subprocess.run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", self.conninfo(user)], input=text, text=True,
                              capture_output=True, timeout=LIMIT_S)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def stop(self):
        self.cluster.send_signal(signal.SIGTERM)
        self.cluster.wait(LIMIT_S)
        self.log.close()


class Described:
    """openapi.json: validates answers, and remembers what was called and how it was answered."""

    def __init__(self, document):
        if jsonschema is None:
            print("SKIPPED: python3-jsonschema is missing (./dev setup): no answer is validated")
            raise SystemExit(77)
        self.document = document
        self.resolver = jsonschema.RefResolver.from_schema(document)
        self.answered = {}

    def operations(self):
        return {(method.upper(), path): operation for path, methods in self.document["paths"].items()
                for method, operation in methods.items()}

    def check(self, method, path, reply):
        """`path` is that of the document, such as /api/v1/jobs/{id}."""
        responses = self.operations()[method, path]["responses"]
        assert str(reply.status) in responses, f"{method} {path}: {reply.status} is not documented: {reply.body[:300]}"
        response = responses[str(reply.status)]
        if "$ref" in response:
            response = self.document["components"]["responses"]["error"]
        (kind, content), = response["content"].items()
        assert reply.headers["Content-Type"] == kind, reply.headers["Content-Type"]
        if kind == "application/json":
            jsonschema.Draft202012Validator(content["schema"], resolver=self.resolver).validate(reply.json)
        self.answered.setdefault((method, path), set()).add(reply.status)
        if reply.status >= 400:
            self.answered.setdefault("codes", set()).add(reply.code)
