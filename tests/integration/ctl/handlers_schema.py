#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""handlers_schema.py CLAIMCTL SCHEMA: config/handlers.schema.json allows what workers take, and nothing else.

Many variants of one handler file are judged twice: by `claimctl handlers check`, which reads them as a worker does, and by
the schema. Both must agree, but for what a schema can't say (BEYOND)."""
import copy
import json
import os
import re
import subprocess
import sys
import tempfile

CLAIMCTL, SCHEMA = sys.argv[1:]
CHUNK = 50  # a worker takes 64 files

ONCE = {
    "$schema": "handlers.schema.json", "command": ["/bin/sh", "-c", "{a}"], "mode": "once",
    "kinds": {"k": {"timeout": "1m", "max_attempts": 3, "max_crashes": 2, "backoff": "fixed:30s", "at_most_once": True,
                    "keep_log": False}, "k2": {}},
    "env": {"A": "b"}, "cwd": "/", "start_timeout": 5, "memory": "64M", "open_files": 64, "exit_codes": {"3": "fail"},
    "result": "last_line", "cpu_seconds": 9}
SERVE = {k: v for k, v in ONCE.items() if k not in ("exit_codes", "result", "cpu_seconds")} | {"mode": "serve"}

VALUES = [None, True, False, -1, 0, 1, 2, 15, 16, 17, 255, 256, 600, 601, 999, 1000, 1001, 16777215, 16777216, 1048576,
          1048577, 31536000, 31536001, 2 ** 40, 2 ** 51, 1.5, 1.0, "", "x", "/", "/bin/sh", "once", "serve", "done",
          "retry", "fail", "snooze", "cancel", "descriptor_4", "last_line", "1", "90s", "500ms", "10m", "2h", "1d", "1.5s",
          "-1s", "10x", " 1s", "0s", "16M", "1G", "1T", "M", "64m", "linear:10s:1h", "list:1s,5s", [], ["/bin/sh"],
          ["/bin/sh"] * 256, ["/bin/sh"] * 257, ["/bin/sh", 1], {}, {"k": {}}, {"K": {}}, {"k-1": {}}, {"_k": {}},
          {"k" * 64: {}}, {"k" * 65: {}}, {"k": 1}, {"A": "b"}, {"_a1": ""}, {"1a": "b"}, {"CLAIMD_A": "b"}, {"CLAIMD": "b"},
          {"A-B": "c"}, {"A": 1}, {"0": "done"}, {"255": "cancel"}, {"256": "fail"}, {"-1": "fail"}, {"x": "fail"},
          {"4": "bad"}, {f"k{i}": {} for i in range(64)}, {f"k{i}": {} for i in range(65)},
          {f"A{i}": "b" for i in range(64)}, {f"A{i}": "b" for i in range(65)}]

# Place and value of what the schema allows and a worker refuses.
BEYOND = [
    (r"timeout$|start_timeout$", r'"0s"|"0ms"', "a time of nothing"),
    (r"start_timeout$", r'\d+|"2h"|"1d"|"64m"', "10 minutes at most"),
    (r"timeout$", r"\d+", "366 days at most"),
    (r"backoff$", r'"(?!fixed:|linear:|list:|exponential:).*"', "the forms of a backoff"),
    (r"memory$", r'"\d+[KMG]"|\d{10,}', "the range of a number with a unit"),
    (r"command", r".*", "what the file system says of the program"),
]


def is_type(value, name):
    if name == "integer":  # a worker refuses 1.0, which JSON Schema takes for an integer
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, {"object": dict, "array": list, "string": str, "boolean": bool}[name])


KNOWN = {"$schema", "title", "description", "default", "$defs", "type", "enum", "const", "pattern", "maxLength", "minimum",
         "maximum", "required", "properties", "additionalProperties", "propertyNames", "minProperties", "maxProperties",
         "items", "minItems", "maxItems", "anyOf", "$ref", "if", "else"}


def allows(root, node, value):
    """Is the value valid? What JSON Schema says of the words in KNOWN."""
    if isinstance(node, bool):
        return node
    unknown = set(node) - KNOWN
    assert not unknown, f"this test does not know {unknown} of JSON Schema"
    if "$ref" in node and not allows(root, root["$defs"][node["$ref"].rsplit("/", 1)[1]], value):
        return False
    if "anyOf" in node and not any(allows(root, n, value) for n in node["anyOf"]):
        return False
    if "if" in node and not allows(root, node["if"], value) and not allows(root, node["else"], value):
        return False
    if "type" in node and not is_type(value, node["type"]):
        return False
    if "enum" in node and value not in node["enum"] or "const" in node and value != node["const"]:
        return False
    if isinstance(value, str):
        return re.search(node.get("pattern", ""), value) is not None and len(value) <= node.get("maxLength", len(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return node.get("minimum", value) <= value <= node.get("maximum", value)
    if isinstance(value, list):
        return (node.get("minItems", 0) <= len(value) <= node.get("maxItems", len(value)) and
                all(allows(root, node.get("items", True), v) for v in value))
    if isinstance(value, dict):
        own = node.get("properties", {})
        rest = node.get("additionalProperties", True)
        return (node.get("minProperties", 0) <= len(value) <= node.get("maxProperties", len(value)) and
                all(k in value for k in node.get("required", [])) and
                all(allows(root, node.get("propertyNames", True), k) for k in value) and
                all(allows(root, own.get(k, rest), v) for k, v in value.items()))
    return True


def places(value, path=()):
    yield path
    for key, inner in value.items() if isinstance(value, dict) else []:
        yield from places(inner, path + (key,))


def variant(document, path, change):
    document = copy.deepcopy(document)
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    change(inner, path[-1])
    return document


def variants():
    for base in ONCE, SERVE:
        yield "as it is", base, base
        for path in places(base):
            where = ".".join(path)
            if path:
                yield where, "left out", variant(base, path, lambda o, k: o.pop(k))
                for value in VALUES:
                    yield where, value, variant(base, path, lambda o, k, v=value: o.__setitem__(k, v))
            yield where + ".unknown", 1, variant(base, path + ("unknown",), lambda o, k: o.__setitem__(k, 1)
                                                 if isinstance(o, dict) else None)


def judge(folder, documents):
    """For each document its problems: without those that are about its neighbours."""
    names = []
    for i, document in enumerate(documents):
        names.append(os.path.join(folder, f"m{i}.json"))
        with open(names[-1], "w", encoding="utf-8") as f:
            json.dump(document, f)
    env = dict(os.environ, CLAIMD_CONFIG="")
    run = subprocess.run([CLAIMCTL, "handlers", "check", "--json", *names], capture_output=True, text=True, check=False,
                         env=env)
    problems = {name: [] for name in names}
    for finding in json.loads(run.stdout)["findings"]:
        if finding["level"] == "error" and " is served by plugin " not in finding["problem"]:
            problems[finding["file"]].append(finding["problem"])
    return list(problems.values())


def is_beyond(where, value):
    text = json.dumps(value)
    return any(re.search(place, where) and re.fullmatch(values, text) for place, values, _ in BEYOND)


def main():
    os.umask(0o022)
    with open(SCHEMA, encoding="utf-8") as f:
        schema = json.load(f)
    cases = list(variants())
    wrong = []
    agreed = [0, 0]
    with tempfile.TemporaryDirectory() as folder:
        for at in range(0, len(cases), CHUNK):
            chunk = cases[at:at + CHUNK]
            for (where, value, document), problems in zip(chunk, judge(folder, [c[2] for c in chunk])):
                by_schema = allows(schema, schema, document)
                if by_schema == (not problems):
                    agreed[by_schema] += 1
                elif not by_schema or not is_beyond(where, value):
                    wrong.append(f"{where} = {json.dumps(value)[:60]}: the schema {'allows' if by_schema else 'refuses'} it, "
                                 f"a worker says: {problems or 'fine'}")
    print(f"{len(cases)} files: {agreed[1]} are good by both, {agreed[0]} are refused by both")
    if wrong or min(agreed) < 100:
        sys.exit("\n".join(wrong[:40]) or "hardly anything was tried")


if __name__ == "__main__":
    main()
