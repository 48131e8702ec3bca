"""What all parts of bench/pep/run say and were asked for: a row of a table each, and the options of
the command line.
"""

import argparse

# What the command line asks for: its attributes are there as soon as it has been read.
options = argparse.Namespace()
failed: list[str] = []
rows: list[str] = []


def row(what: str, value: str, wanted: str, reached: bool | None, note: str = "") -> None:
    rows.append(what)
    if reached is False:
        failed.append(what)
    word = {True: "pass", False: "FAIL", None: ""}[reached]
    print(f"| {what} | {value} | {wanted} | {word}{' ' + note if note else ''} |", flush=True)
