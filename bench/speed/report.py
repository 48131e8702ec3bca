"""Verdicts: printed as they fall, summed up at the end."""

import sys


class Report:
    """What was asked, and whether it holds."""

    def __init__(self) -> None:
        self.verdicts: list[tuple[str, str, str]] = []

    def section(self, title: str, *notes: str) -> None:
        """Begins the rows of one kind."""
        print(f"\n{title}", flush=True)
        for note in notes:
            print(f"  {note}", flush=True)

    def line(self, text: str) -> None:
        """A line of a table."""
        print(f"  {text}", flush=True)

    def judge(self, what: str, good: bool, figure: str) -> None:
        """A row that must hold."""
        self._give(what, "pass" if good else "FAIL", figure)

    def skip(self, what: str, why: str) -> None:
        """A row that could not be measured here."""
        self._give(what, "SKIPPED", why)

    def show(self, what: str, figure: str) -> None:
        """A row that nothing was promised for."""
        self._give(what, "", figure)

    def _give(self, what: str, verdict: str, figure: str) -> None:
        self.verdicts.append((what, verdict, figure))
        print(f"  => {what}: {figure} {verdict}".rstrip(), flush=True)

    def finish(self) -> int:
        """Prints all verdicts; the exit status."""
        width = max((len(what) for what, _, _ in self.verdicts), default=0)
        print("\nAll rows")
        for what, verdict, figure in self.verdicts:
            print(f"  {verdict or 'printed':8} {what:{width}}  {figure}")
        failed = [what for what, verdict, _ in self.verdicts if verdict == "FAIL"]
        if failed:
            print(
                f"{len(failed)} of {len(self.verdicts)} rows FAILED: {'; '.join(failed)}",
                file=sys.stderr,
            )
        return 1 if failed else 0
