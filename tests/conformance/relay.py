# SPDX-License-Identifier: Apache-2.0
"""relay.py COMMAND…: stands between the host and a program that serves. To the program it is a later host: it speaks
versions 1 to 7, its lines come in halves and have members that the program doesn't know, and between them are lines
that it doesn't know, or about a run that is over. With args.relay = "kill" the program dies before it reads the job."""
import array
import fcntl
import json
import os
import signal
import sys
import termios
import time

HALF_WAIT_S = 1  # a program may not read while it works: after this the rest is sent anyway


def write(fd, data):
    while data:
        data = data[os.write(fd, data):]


def is_read(fd):
    left = array.array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, left)
    return left[0] == 0


def write_in_halves(fd, line):
    half = len(line) // 2
    write(fd, line[:half])
    until = time.monotonic() + HALF_WAIT_S
    while not is_read(fd) and time.monotonic() < until:
        time.sleep(0.001)
    write(fd, line[half:])


def take(line, fd, program):
    said = json.loads(line)
    if "claimd" in said:
        line = b'{"claimd":[1,7],"greeting":{"x":[null,"y"]}}\n'
    if "job" in said:
        if isinstance(said["args"], dict) and said["args"].get("relay") == "kill":
            os.kill(program, signal.SIGKILL)
        write(fd, b'{"later":{"n":%d}}\n{"stop":"timeout","n":%d}\n' % (said["n"], said["n"] - 1))
        line = line[:-2] + b',"later":{"x":[null,"y"]}}\n'
    if "stop" in said:
        line = line[:-2] + b',"later":true}\n'
    write_in_halves(fd, line)


def relay(fd_in, fd_out, program):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    rest = b""
    while chunk := os.read(fd_in, 1 << 16):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            take(line + b"\n", fd_out, program)


def main():
    """The command stays the process that the host has started; this becomes a child of it."""
    to_program = os.pipe()
    program = os.getpid()
    if os.fork() == 0:
        os.close(4)
        os.close(to_program[0])
        try:
            relay(3, to_program[1], program)
        except BrokenPipeError:
            pass
        os._exit(0)
    os.close(to_program[1])
    os.dup2(to_program[0], 3)
    os.set_inheritable(3, True)
    os.set_inheritable(4, True)
    os.closerange(5, 64)
    os.execv(sys.argv[1], sys.argv[1:])


main()
