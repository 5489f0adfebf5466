# SPDX-License-Identifier: Apache-2.0
"""A private cluster with claimd-web before it, which has the rights of role claimd_web and no more by default."""

import json
import os
import signal
import subprocess
import tempfile
import threading
import time

WAIT_S = 120
OPERATOR = "operator-of-the-page-001"
READER = "reader-of-the-page-00001"


class Cluster:
    """`claimctl dev` and claimd-web, in a folder that is removed. workers: how many; env: for all programs; web:
    options of claimd-web; login: whose rights claimd-web has in PostgreSQL."""

    def __init__(self, bin_dir, workers=2, handlers=None, env=None, web=None, login="web_login"):
        self.bin = os.path.abspath(bin_dir)
        self.folder = tempfile.TemporaryDirectory(prefix="web-")
        os.chmod(self.folder.name, 0o755)
        self.env = dict(os.environ, **(env or {}))
        self.programs = []
        more = []
        if handlers:
            more = ["--handlers", os.path.dirname(self.write("handlers/page.json", handlers))]
        self.start(["claimctl", "dev", "--dir", self.path("dev"), "--workers", str(workers), "--masters", "3", *more],
                   "Ctrl-C stops everything")
        self.env["CLAIMD_CONFIG"] = self.path("dev/claimd.json")
        self.sql("CREATE ROLE web_login LOGIN IN ROLE claimd_web")
        with open(os.open(self.path("tokens"), os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            file.write(f"operator anna {OPERATOR}\nreader rob {READER}\n")
        self.url = self.start_web("web.json", login, **(web or {}))

    def start_web(self, name, login="web_login", **web):
        """Starts a claimd-web with these options, in a file of this name. Returns its URL."""
        config = {**self.read("dev/claimd.json"), "web": {"listen": "127.0.0.1:0", "mode": "operate",
                                                          "tokens_file": self.path("tokens"), **web}}
        config["postgres"]["conninfo"] = self.conninfo(login)
        line = self.start(["claimd-web", "--config", self.write(name, config)], "event=ready")
        return next(word for word in line.split() if word.startswith("http=")).removeprefix("http=")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def conninfo(self, user):
        return f"host={self.path('dev')} port=5432 user={user} dbname=claimd"

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return json.load(file)

    def write(self, name, value):
        """Writes a file of JSON, and returns its path."""
        os.makedirs(os.path.dirname(self.path(name)), mode=0o755, exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            json.dump(value, file)
        return self.path(name)

    def start(self, command, ready):
        """Starts a program, waits for the line that says that it is ready, and returns this line."""
        program = subprocess.Popen([os.path.join(self.bin, command[0]), *command[1:]], cwd=self.folder.name,
                                   env=self.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.programs.append(program)
        said = []
        for line in program.stdout:
            said.append(line)
            if ready in line:
                threading.Thread(target=program.stdout.read, daemon=True).start()
                return line
        raise RuntimeError(f"{command[0]} ended before it was ready: {''.join(said)}")

    def sql(self, text, timeout=WAIT_S):
        """Runs statements, and returns what they print."""
        done = self.psql(text, timeout)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return done.stdout.strip()

    def psql(self, text, timeout=WAIT_S):
        return subprocess.run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", self.conninfo("postgres")], input=text, text=True,
                              check=False, timeout=timeout, capture_output=True)

    @staticmethod
    def until(what, condition):
        """Waits until condition() is true; returns its value."""
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            if found := condition():
                return found
            time.sleep(0.05)
        raise RuntimeError(f"waited too long for {what}")

    def ctl(self, *words):
        subprocess.run([os.path.join(self.bin, "claimctl"), *words], env=self.env, check=True, timeout=WAIT_S,
                       stdout=subprocess.DEVNULL)

    def stop(self):
        for program in reversed(self.programs):
            program.send_signal(signal.SIGTERM)
            program.wait(WAIT_S)
        self.folder.cleanup()
