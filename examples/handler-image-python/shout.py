# SPDX-License-Identifier: Apache-2.0
"""shout {"say": TEXT}: the text in capitals."""
import claimd


@claimd.job("shout")
def shout(job):
    text = job.args.get("say")
    if not isinstance(text, str):
        raise claimd.Fail("args need a text to say")
    print("shouting", text)
    return {"said": text.upper()}


claimd.main()
