# SPDX-License-Identifier: Apache-2.0
"""The steps that a job's args name (docs/guide/other-languages.md): the same for candidates with the SDK and without."""
import os
import re


def octets(text):
    """The text, in which \\0ooo stands for an octet."""
    return re.sub(rb"\\0([0-7]{3})", lambda digits: bytes([int(digits[1], 8)]), text.encode())


def write(fd, data):
    while data:
        data = data[os.write(fd, data):]


def steps(args, attempt):
    """(verb, rest) of each step, as often as it is to be taken in this attempt."""
    text = args.get("do", "done_args") if isinstance(args, dict) else "done_args"
    for line in filter(None, text.split("\n")):
        verb, _, rest = line.partition(" ")
        times = 1
        if verb[-1] in ":*" and verb[:-1].isdigit():
            number, mark = int(verb[:-1]), verb[-1]
            verb, _, rest = rest.partition(" ")
            times = number if mark == "*" else int(number == attempt)
        for _ in range(times):
            yield verb, rest
