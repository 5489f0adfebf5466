# SPDX-License-Identifier: Apache-2.0
"""The programs of the README and the example of examples/locks, as they stand."""

import os
import re
import subprocess
import sys
import unittest

from world import SOON, WITH_OPTIONS, World

SOURCE = os.environ["REDLOCK_SOURCE"]


class Examples(World):
    def test_readme(self):
        with open(f"{SOURCE}/redlock/python/README.md", encoding="utf-8") as file:
            programs = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
        outputs = (r"nobody else does this now; fence 1, \d+ s left\n", "held\n")
        for program, said in zip(programs, outputs, strict=True):
            path = f"{self.dir}/program.py"
            with open(path, "w", encoding="utf-8") as file:
                file.write(program)
            run = f"{WITH_OPTIONS}import runpy; runpy.run_path({path!r})"
            done = subprocess.run([sys.executable, "-X", "dev", "-c", run], env=self.environment, capture_output=True,
                                  text=True, timeout=SOON, check=False)
            self.assertRegex(done.stdout, f"^{said}$", done.stderr)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_with_block(self):
        done = subprocess.run([sys.executable, f"{SOURCE}/examples/locks/15_with_block.py", *self.nodes.split(",")],
                              capture_output=True, text=True, timeout=SOON, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.splitlines(), [
            "A: has it, fence 1", "B: tries: None", "A: the disk is full", "B: has it, fence 2", "A: works on",
            "A: the lease of 'example:with-block' ended before the block did", "tasks: 50 of 50"])


if __name__ == "__main__":
    unittest.main()
