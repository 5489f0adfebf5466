# SPDX-License-Identifier: Apache-2.0
"""A program that breaks the protocol in the way that a job's args name. It uses no SDK."""
import json
import os
import signal
import sys
import time


def say(data):
    data = data if isinstance(data, bytes) else (json.dumps(data) + "\n").encode()
    while data:
        data = data[os.write(4, data):]


def lines():
    rest = b""
    while chunk := os.read(3, 65536):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole


def grandchild():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv("/bin/sleep", ["sleep", "987654"])
        os._exit(0)
    os.wait()


def act(how, n):
    done = {"n": n, "end": "done", "result": how}
    if how == "garbage":
        say(b"no json\n")
    elif how == "utf8":
        say(b'{"n": 1, "log": "\xff\xfe"}\n')
    elif how == "long":
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        while True:
            say(b"x" * 65536)
    elif how == "twice":
        say((json.dumps(done) + "\n" + json.dumps(done) + "\n").encode())
    elif how == "other":
        say({**done, "n": n + 7})
    elif how == "unknown":
        say({"n": n, "colour": "red"})
    elif how == "closes":
        os.close(4)
        time.sleep(600)
    elif how == "forks":
        if os.fork() == 0:
            time.sleep(600)
        os._exit(3)
    elif how == "dies":
        print("last words", flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    elif how == "never":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        grandchild()
        while True:
            time.sleep(600)
    elif how == "late":  # and it dies when the job is over
        say(done)
        os._exit(5)
    elif how == "goes":  # it has answered and reads no more, while the next job may be in its pipe
        say(done)
        time.sleep(0.2)
        os._exit(0)
    elif how == "leaves":
        grandchild()
        say(done)
    elif how == "flood":
        for i in range(20000):
            say({"n": n, "log": "line %d %s" % (i, "x" * 100)})
        say(done)
    elif how == "escapes":
        say({"n": n, "log": "a\0b \ud800 \\ \" ü 😀"})
        say({"n": n, "progress": 400, "text": "too far"})
        say(('{"n": %d, "end": "done", "result": {"a": 1.50, "b": 123456789012345678901234567890}}\n' % n).encode())
    else:
        say(done)


def main():
    kinds = sys.argv[1:]
    for line in lines():
        said = json.loads(line)
        if "claimd" in said:
            say({"claimd": 1, "kinds": kinds, "sigterm": True})
        elif "job" in said:
            act(said["args"]["how"], said["n"])


main()
