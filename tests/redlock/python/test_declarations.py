# SPDX-License-Identifier: Apache-2.0
"""The Python declarations are those of the headers: the same structs, members, offsets and sizes, the
same enums, constants and signatures. The compiler reads the headers."""

import ctypes
import os
import re
import subprocess
import tempfile
import unittest

from redlock import _c

HEADER = "redlock_status.h"  # and what it includes
SCALARS = {"bool": ctypes.c_bool, "int": ctypes.c_int, "unsigned": ctypes.c_uint, "int64_t": ctypes.c_int64,
           "uint64_t": ctypes.c_uint64, "size_t": ctypes.c_size_t, "void": None}
HANDLES = {"struct redlock_client", "struct redlock_lock", "struct redlock_owner", "void"}


def compile_c(*arguments):
    return subprocess.run([os.environ.get("CC", "cc"), "-I", os.environ["REDLOCK_HEADERS"], *arguments], check=True,
                          capture_output=True, text=True).stdout


def headers():
    """Their own text, without comments, macros and what they include."""
    with tempfile.NamedTemporaryFile("w", suffix=".c") as file:
        file.write(f"#include <{HEADER}>\n")
        file.flush()
        lines = compile_c("-E", file.name).splitlines()
    text, is_ours = [], False
    for line in lines:
        if line.startswith("# "):
            is_ours = "redlock" in os.path.basename(line.split('"')[1])
        elif is_ours:
            text.append(line)
    return re.sub(r"\s+", " ", " ".join(text))


def numbers(expressions):
    """What they are for the compiler."""
    with tempfile.TemporaryDirectory() as directory:
        program = os.path.join(directory, "numbers")
        with open(program + ".c", "w", encoding="utf-8") as file:
            file.write(f"#include <{HEADER}>\n#include <stdio.h>\nint main(void) {{\n")
            file.writelines(f'printf("%lld\\n", (long long)({e}));\n' for e in expressions)
            file.write("return 0; }\n")
        compile_c("-o", program, program + ".c")
        output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return dict(zip(expressions, map(int, output.split())))


def as_declared(text, typedefs):
    """The ctypes type of a parameter or a result."""
    text = re.sub(r"\bconst\b", "", text)
    name = re.match(r"\s*((?:struct |enum )?[a-z_0-9]+)", text).group(1).strip()
    depth = text.count("*") + text.count("[")
    if name in typedefs:
        return typedefs[name]
    if name == "char" and depth:
        return ctypes.c_char_p
    if name in HANDLES and depth:
        return ctypes.c_void_p if depth == 1 else ctypes.POINTER(ctypes.c_void_p)
    if name.startswith("struct "):
        struct = _c.STRUCTS[name.removeprefix("struct redlock_")]
        for _ in range(depth):
            struct = ctypes.POINTER(struct)
        return struct
    scalar = ctypes.c_int if name.startswith("enum ") else SCALARS[name]
    return ctypes.POINTER(scalar) if depth else scalar


class Declarations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = headers()

    def test_structs(self):
        for name, struct in _c.STRUCTS.items():
            with self.subTest(struct=name):
                body = re.search(r"struct redlock_%s \{(.*?)\} ?;" % name, self.text).group(1)
                members = [re.search(r"\(\*(\w+)\)|(\w+)(?:\[[^]]*\])?$", m.strip()).group(1, 2)
                           for m in body.split(";") if m.strip()]
                self.assertEqual([a or b for a, b in members], [field[0] for field in struct._fields_])
                c_type = f"struct redlock_{name}"
                wanted = {f"sizeof({c_type})": ctypes.sizeof(struct)}
                for field in struct._fields_:
                    at = getattr(struct, field[0])
                    wanted[f"offsetof({c_type}, {field[0]})"] = at.offset
                    wanted[f"sizeof((({c_type} *)0)->{field[0]})"] = at.size
                self.assertEqual(numbers(list(wanted)), wanted)

    def test_enums(self):
        prefixes = {"result": "REDLOCK_", "event_kind": "REDLOCK_EVENT_"}
        for name, enum in _c.ENUMS.items():
            with self.subTest(enum=name):
                body = re.search(r"enum redlock_%s \{(.*?)\}" % name, self.text).group(1)
                prefix = prefixes.get(name, f"REDLOCK_{name.upper()}_")
                names = [word.strip() for word in body.split(",") if word.strip()]
                self.assertEqual(names, [prefix + value.name for value in enum])
                self.assertEqual(numbers(names), {prefix + value.name: value.value for value in enum})

    def test_constants(self):
        for name in ("NODES_MAX", "KEYS_MAX", "TEXT_SIZE", "LATENCY_BUCKETS", "FINGERPRINT_SIZE"):
            self.assertEqual(numbers(["REDLOCK_" + name]), {"REDLOCK_" + name: getattr(_c, name)})

    def test_functions(self):
        typedefs = {"redlock_done": _c.Done}
        for name, (result, *arguments) in _c.FUNCTIONS.items():
            with self.subTest(function=name):
                found = re.search(r"([^;{}]*?)\bredlock_%s\(([^;]*?)\) ?;" % name, self.text)
                declared = [] if found.group(2) == "void" else found.group(2).split(",")
                self.assertEqual([as_declared(text, typedefs) for text in declared], arguments)
                # c_char_p would end at a key's first NUL.
                expected = ctypes.c_void_p if name == "lock_key" else as_declared(found.group(1), typedefs)
                self.assertEqual(expected, result)

    def test_callbacks(self):
        for pattern, declared in ((r"\(\*on_event\)\((.*?)\)", _c.OnEvent), (r"\(\*on_change\)\((.*?)\)", _c.OnChange),
                                  (r"void redlock_done\((.*?)\) ?;", _c.Done)):
            parameters = re.search(pattern, self.text).group(1).split(",")
            self.assertEqual(tuple(as_declared(text, {}) for text in parameters), declared._argtypes_)
            self.assertIsNone(declared._restype_)


if __name__ == "__main__":
    unittest.main()
