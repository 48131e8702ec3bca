"""run(): the command line's numbers, a lock that is let go of, Ctrl-C, tables for everybody."""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import xcpnet
from conftest import ROOT, SMALL

EXPERIMENTS = sorted((ROOT / "experiments").glob("*/*.toml"))
# One of each paper that takes seconds; all of them take as long as `make reproduce`.
SOME = {"zhang-henderson-2005/fig05", "ixcp/fig02"}


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(p, id=name(p), marks=[] if name(p) in SOME else pytest.mark.all)
        for p in EXPERIMENTS
    ],
)
def test_it_prints_what_the_command_line_prints(cli: str, path: Path) -> None:
    expected = subprocess.run([cli, "run", path, "--json"], check=True, capture_output=True).stdout
    assert xcpnet.run(path, series=False).json().encode() == expected


def test_a_file_may_name_a_trace(cli: str, tmp_path: Path) -> None:
    (tmp_path / "down.trace").write_text("1\n3\n4\n")
    path = tmp_path / "air.toml"
    air = SMALL.replace('"10mbit"', '"10mbit"\nrate-changes = "down.trace"')
    with pytest.raises(xcpnet.ScenarioError, match="only be named in a scenario file"):
        xcpnet.Scenario.from_text(air)
    path.write_text(air)
    expected = subprocess.run([cli, "run", path, "--json"], check=True, capture_output=True).stdout
    assert xcpnet.run(path, series=False).json().encode() == expected

    # A longer run needs more of the trace, even where the file is no longer.
    longer = [cli, "run", path, "--json", "--set", "duration=9s"]
    expected = subprocess.run(longer, check=True, capture_output=True).stdout
    scenario = xcpnet.Scenario(path)
    (tmp_path / "down.trace").unlink()
    scenario = pickle.loads(pickle.dumps(scenario))
    assert xcpnet.run(scenario.set({"duration": "9s"}), series=False).json().encode() == expected
    swept = xcpnet.sweep(xcpnet.Sweep(scenario, {"duration": ["9s"]}), out=tmp_path / "swept")
    goodput = json.loads(expected.splitlines()[0])["flows"][0]["goodput_bps"]
    assert swept.flows.column("goodput_bps")[0] == goodput


def test_settings_seed_and_variants_are_those_of_the_command_line(cli: str, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SMALL)
    arguments = [
        "--set",
        "link.bottleneck.rate=7mbit",
        "--set",
        "flow.count=3",
        "--seed",
        "9",
        "--variant",
        "TCP",
    ]
    expected = subprocess.run(
        [cli, "run", "s.toml", "--json", *arguments], check=True, cwd=tmp_path, capture_output=True
    ).stdout
    s = xcpnet.Scenario(tmp_path / "s.toml").set({"link.bottleneck.rate": "7mbit", "flow.count": 3})
    r = xcpnet.run(s.with_seed(9).only("TCP"))
    assert r.json().encode() == expected
    assert r.summary == json.loads(expected)
    assert (s.variants, s.only("TCP").variants, r.variants) == (["XCP", "TCP"], ["TCP"], ["TCP"])
    assert pickle.loads(pickle.dumps(s)) == s
    assert "--set flow.count=3" in s.toml()
    titled = s.set({"title": "two\nlines"})
    assert '# --set title="two\\nlines"\n' in titled.toml()
    assert xcpnet.Scenario.from_text(titled.toml()).title == "Two flows"


def test_theory_is_that_of_the_command_line(cli: str) -> None:
    path = ROOT / "experiments/zhang-henderson-2005/fig05.toml"
    out = subprocess.run(
        [cli, "theory", path, "--json"], check=True, capture_output=True, text=True
    ).stdout
    assert xcpnet.theory(path) == [json.loads(line) for line in out.splitlines()]


def test_what_is_wrong_is_told_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(xcpnet.ScenarioError) as told:
        xcpnet.Scenario.from_text(SMALL.replace("delay", "dealy"), "ship.toml")
    problems = told.value.problems
    # The link that lacks its delay, and the key that nobody knows.
    assert {(p.source, p.line) for p in problems} == {("ship.toml", 7), ("ship.toml", 11)}
    assert any("dealy" in p.what for p in problems) and any(
        "delay" in (p.help or "") for p in problems
    )
    assert "ship.toml:11" in str(told.value)
    again = pickle.loads(pickle.dumps(told.value))  # it comes from workers, too
    assert again.problems == told.value.problems
    with pytest.raises(xcpnet.ScenarioError, match="cubik"):
        xcpnet.Scenario.from_text(SMALL).set({"flow.congestion": "cubik"})
    with pytest.raises(FileNotFoundError):
        xcpnet.Scenario("no-such-file.toml")
    (tmp_path / "latin1.toml").write_bytes(b'title = "\xe9"')
    with pytest.raises(ValueError, match=r"latin1\.toml is not UTF-8 text"):
        xcpnet.Scenario(tmp_path / "latin1.toml")


def test_others_run_meanwhile() -> None:
    """A thread counts while a simulation runs: were the lock held, it would count once, before or
    after."""
    counted, stop = [0], threading.Event()

    def count() -> None:
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        at = [0.0]
        s = xcpnet.Scenario.from_text(SMALL).set({"duration": "100s"})
        before = counted[0]
        xcpnet.run(s, progress=at.append)
        assert counted[0] - before >= 5
        assert at == sorted(at) and max(at) <= 1
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize(
    "what",
    [
        "xcpnet.run(s)",
        "xcpnet.sweep(xcpnet.Sweep(s))",
        "xcpnet.sweep(xcpnet.Sweep(s), 'threads')",
        # Only the parent is interrupted: nothing but the parent ends its workers.
        "xcpnet.sweep(xcpnet.Sweep(s), 'processes')",
    ],
)
def test_ctrl_c_ends_it(what: str) -> None:
    code = f"""
import xcpnet
s = xcpnet.Scenario.from_text({SMALL!r}).set({{"duration": "10000h"}})
print("begun", flush=True)
try:
    {what}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "begun\n"
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=120)
    assert (out, child.returncode) == ("interrupted\n", 0)


def test_an_exception_of_the_progress_function_ends_it() -> None:
    def tired(_: float) -> None:
        raise LookupError("tired")

    s = xcpnet.Scenario.from_text(SMALL).set({"duration": "10000h"})
    with pytest.raises(LookupError, match="tired"):
        xcpnet.run(s, progress=tired)


@pytest.fixture(scope="module")
def result() -> xcpnet.Result:
    return xcpnet.run(xcpnet.Scenario.from_text(SMALL).set({"duration": "3s", "sample": "50ms"}))


def test_tables_go_everywhere(result: xcpnet.Result) -> None:
    for name in ("runs", "links", "flows", "groups"):
        table = getattr(result, name)
        rows = {column: table.column(column) for column in table.column_names}
        assert len(table) > 0
        tried = 0
        try:
            import pyarrow as pa

            assert pa.table(table).to_pydict() == rows
            tried += 1
        except ImportError:
            pass
        try:
            import polars as pl

            assert pl.DataFrame(table).to_dict(as_series=False) == rows
            tried += 1
        except ImportError:
            pass
        try:
            import duckdb

            own = (
                duckdb.from_arrow(table)
                if hasattr(duckdb, "from_arrow")
                else duckdb.sql("select * from own")
            )
            assert len(own.fetchall()) == len(table)
            tried += 1
        except ImportError:
            pass
        if not tried:
            pytest.skip("arrow: no pyarrow, polars or duckdb")
    assert repr(result.links).startswith("<xcpnet.Table: 4 rows; columns run, variant, ")
    for one in (xcpnet.Result, xcpnet.Dataset, xcpnet.Table):
        public = {n: of for n, of in vars(one).items() if not n.startswith("_")}
        assert not [n for n, of in public.items() if not of.__doc__], one
    with pytest.raises(KeyError, match="utilisation"):
        result.links.column("utilization")


def test_series_are_those_of_the_run(result: xcpnet.Result) -> None:
    with pytest.raises(ValueError, match="on a single run"):
        result.series()
    series = result["XCP"].series("links")
    assert series.column_names[:3] == ["time_s", "link", "utilisation"]
    assert set(series.column("link")) == {"bottleneck", "bottleneck.reverse"}
    assert max(series.column("time_s")) == pytest.approx(3)
    xr = pytest.importorskip("xarray")
    data = result["XCP"].to_xarray()
    assert isinstance(data, xr.Dataset) and set(data.dims) == {"time", "link", "flow"}
    there = [i for i, link in enumerate(series.column("link")) if link == "bottleneck"]
    own = data["utilisation"].sel(link="bottleneck").values
    assert list(own) == [series.column("utilisation")[i] for i in there]


def test_figures(result: xcpnet.Result, tmp_path: Path) -> None:
    html = result._repr_html_()
    assert html.count("<svg") == 2 and "bottleneck" in html
    assert result.svg("delay").startswith("<svg")
    with pytest.raises(ValueError, match="there are the figures"):
        result.svg("pie")
    page = result.report(tmp_path / "out")
    assert (
        "<html" in page.read_text() and (tmp_path / "out/summary.json").read_text() == result.json()
    )
    pytest.importorskip("matplotlib")
    figure = result.plot("queue_mean_packets", "cwnd_packets")
    assert len(figure.axes) == 2 and all(axes.lines for axes in figure.axes)
    figure.savefig(tmp_path / "queue.png")
    with pytest.raises(ValueError, match="no quantity"):
        result.plot("speed")
    for draw in (result.plot, result.svg):
        with pytest.raises(ValueError) as told:
            draw(link="nope")
        expected = 'no link "nope" in these runs; the links are bottleneck, bottleneck.reverse'
        assert str(told.value) == f"there is {expected}"


def test_a_report_that_does_not_fit_leaves_nothing(result: xcpnet.Result, tmp_path: Path) -> None:
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(OSError, match=r"summary\.json"):
            result.report(tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list((tmp_path / "out").iterdir())


def test_what_cannot_be_pickled_says_what_to_return(result: xcpnet.Result) -> None:
    data = xcpnet.sweep(xcpnet.Sweep(xcpnet.Scenario.from_text(SMALL)), shard=1)
    for one, instead in (
        (result, "return its summaries"),
        (result.links, "return its columns"),
        (data, "return its place"),
    ):
        with pytest.raises(TypeError, match=f"cannot be pickled or copied: {instead}"):
            pickle.dumps(one)


def test_what_one_should_know_is_a_warning_and_stands_in_a_notebook() -> None:
    text = SMALL.replace('kind = "xcp"', 'kind = "drop-tail"')
    with pytest.warns(UserWarning, match="crosses no XCP queue"):
        told = xcpnet.run(xcpnet.Scenario.from_text(text))
    assert "<li>sim: " in told._repr_html_() and "crosses no XCP queue" in told._repr_html_()


def test_the_colours_are_the_report_s() -> None:
    from xcpnet._plot import COLOURS

    css = (ROOT / "crates/xcp-report/assets/report.css").read_text()
    first = dict(re.findall(r"--(c\d): (#[0-9a-f]{6})", css)[:8])
    assert [first[f"c{i}"] for i in range(8)] == COLOURS


def small_network() -> xcpnet.Network:
    n = xcpnet.Network(duration="200ms")
    n.link("S", "D", rate="10mbit", delay="5ms", queue="xcp")
    return n.flow("S", "D", cc="xcp")


def parallel(**second: str) -> xcpnet.Network:
    networkx = pytest.importorskip("networkx")
    graph = networkx.MultiGraph([("S", "D"), ("S", "D", second)])
    link = {"rate": "10mbit", "delay": "5ms", "queue": "xcp"}
    return xcpnet.Network.from_networkx(graph, link, duration="200ms").flow("S", "D", cc="xcp")


@pytest.mark.parametrize(
    ("wrong", "kind", "told"),
    [
        (lambda: xcpnet.run(small_network(), jobs=-1), ValueError, "^jobs=-1: give a whole number"),
        (lambda: xcpnet.run(small_network(), threads=-1), ValueError, "^threads=-1: give a whole"),
        (lambda: xcpnet.sweep(small_network(), jobs=0), ValueError, "^jobs=0: .* from 1 on"),
        (lambda: xcpnet.sweep(small_network(), retries=None), ValueError, "^retries=None: .* 0 on"),
        (lambda: xcpnet.run(small_network(), progress="x"), TypeError, "^progress='x': give a"),
        (lambda: xcpnet.sweep(small_network(), progress="x"), TypeError, "^progress='x': give a"),
        (lambda: xcpnet.run({"duration": "1s"}), TypeError, r"Scenario\.from_dict\("),
        (lambda: xcpnet.run('duration = "1s"'), ValueError, r"Scenario\.from_text\("),
        (lambda: xcpnet.run(SMALL * 99), ValueError, r"Scenario\.from_text\("),
        (
            lambda: xcpnet.Scenario.from_text(SMALL).only("x"),
            ValueError,
            r"^no variant 'x'; there are \['XCP', 'TCP'\]",
        ),
        (
            lambda: xcpnet.Sweep(small_network(), seeds=range(1, 10**12)),
            xcpnet.SweepError,
            "999999999999 runs, more than",
        ),
        (
            lambda: xcpnet.run(small_network(), series=False).plot("cwnd_packets"),
            ValueError,
            "there are no curves: `series=False`",
        ),
        (lambda: xcpnet.run(small_network())[:], TypeError, "by its variant's name or its number"),
        (parallel, ValueError, "two edges are named S-D: give each a `name`"),
        (
            lambda: xcpnet.run(b"ship.toml"),
            TypeError,
            "^b'ship.toml' is no scenario: give a file's",
        ),
        (lambda: xcpnet.run(""), ValueError, "^an empty text is no path"),
        (
            lambda: small_network().flow("S", "D", cc="xcp", congestion="cubic"),
            TypeError,
            "^cc is short for congestion",
        ),
        (
            lambda: xcpnet.Scenario.from_text(SMALL).with_seed(True),
            xcpnet.ScenarioError,
            "this is true or false",
        ),
        (
            lambda: xcpnet.Sweep(small_network(), {"seed": [1, 2]}),
            ValueError,
            "^seeds are not part of the grid: give them as seeds=",
        ),
        (
            lambda: xcpnet.theory(small_network(), at="300ms"),
            ValueError,
            "^at: the run ends at 0.2 s; give an earlier instant",
        ),
    ],
)
def test_what_is_given_wrongly_is_told(wrong: Any, kind: Any, told: str) -> None:
    if "plot" in wrong.__code__.co_names:
        pytest.importorskip("matplotlib")
    with pytest.raises(kind, match=told):
        wrong()


def test_what_is_given_otherwise_is_taken() -> None:
    assert sorted(xcpnet.run(parallel(name="other")).summary["links"])[::2] == ["S-D", "other"]
    assert len(xcpnet.sweep(small_network(), shard=1).runs) == 1
    assert xcpnet.Sweep(xcpnet.Scenario.from_text(SMALL), variants="TCP").runs == 1


def test_claims_are_judged() -> None:
    r = xcpnet.run(ROOT / "experiments/zhang-henderson-2005/fig05.toml")
    claims = xcpnet.expect(r)
    assert claims and all(claim["inside"] for claim in claims)
    assert {claim["variant"] for claim in claims} == {"xcp", "tcp-fifo", "tcp-red"}


def test_every_choice_of_a_law_can_be_made() -> None:
    """The keys are the schema's: whatever is added there can be written here."""
    schema = xcpnet.Scenario.schema()
    text = json.dumps(schema)
    assert '"max-interval"' in text and '"spare-most"' in text
    law = xcpnet.Law(
        "xcp-ir",
        alpha=0.3,
        beta=0.1,
        gamma=0.2,
        overhead=38,
        pools=False,
        capacity="9mbit",
        target="5ms",
        input="xcp",
        interval="max",
        min_interval="1ms",
        max_interval="1s",
        capacity_for_xcp="minus-other",
        shuffle="all",
        spare="scaled",
        spare_most=2,
        gain="own-rtt",
    )
    n = xcpnet.Network(duration="1s").link(
        "S", "D", rate="10mbit", delay="5ms", queue=xcpnet.xcp(limit=100, law=law)
    )
    assert xcpnet.run(n.flow("S", "D", cc="xcp")).summary["links"]["S-D"]["packets"] > 0
    with pytest.raises(xcpnet.ScenarioError, match="alhpa"):
        wrong = xcpnet.Network(duration="1s").link(
            "S", "D", rate="10mbit", delay="5ms", queue=xcpnet.xcp(law=xcpnet.Law(alhpa=1))
        )
        xcpnet.run(wrong.flow("S", "D", cc="xcp"))


def test_dicts_come_through_toml() -> None:
    content = {
        "title": 'a "quoted" \\ line\nwith \u007f and ü',
        "duration": "1s",
        "link": [
            {
                "name": "x y",
                "between": ["S", "D"],
                "rate": "1mbit",
                "delay": "1ms",
                "queue": {"limit": 9},
            }
        ],
        "flow": [{"from": "S", "to": "D", "congestion": "xcp", "paced": True}],
    }
    assert xcpnet.Scenario.from_dict(content).title.startswith('a "quoted" \\ line')


def test_a_network_s_dict_is_a_copy() -> None:
    n = small_network()
    content = n.to_dict()
    content["link"][0]["rate"] = "1mbit"
    content["flow"].clear()
    assert n.to_dict()["link"][0]["rate"] == "10mbit" and len(n.to_dict()["flow"]) == 1


def test_it_imports_without_any_extra(tmp_path: Path) -> None:
    """Only the standard library is needed."""
    code = (
        "import sys, xcpnet; bad = {'numpy', 'pyarrow', 'pandas', 'matplotlib', 'xarray',"
        " 'obstore'};assert not bad & set(sys.modules), bad & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ})
