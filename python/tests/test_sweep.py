"""sweep(): the bytes of one machine from every executor, whatever is killed; clear refusals."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest
import xcpnet
from conftest import ARGUMENTS, SMALL, bytes_of, files, small_sweep

SHARDS = 12
WHOLE = 4 + 1 + 5 * SHARDS  # tables, manifest, parts and markers


def same(place: Path, of_cli: dict[str, bytes]) -> None:
    xcpnet.open(place).compact()
    assert bytes_of(place) == of_cli
    assert len(files(place)) == WHOLE, "nothing is left over"


def test_by_itself(of_cli: dict[str, bytes], tmp_path: Path) -> None:
    parts: list[float] = []
    xcpnet.sweep(small_sweep(), out=tmp_path / "out", shard=SHARDS, progress=parts.append)
    assert parts == sorted(parts) and parts[-1] == 1
    same(tmp_path / "out", of_cli)


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_by_name(executor: str, of_cli: dict[str, bytes], tmp_path: Path) -> None:
    xcpnet.sweep(small_sweep(), executor, out=tmp_path / "out", shard=SHARDS)
    same(tmp_path / "out", of_cli)


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_on_a_pool(kind: Any, of_cli: dict[str, bytes], tmp_path: Path) -> None:
    with kind(2) as pool:
        xcpnet.sweep(small_sweep(), pool, out=tmp_path / "out", shard=SHARDS)
    same(tmp_path / "out", of_cli)


@pytest.mark.parametrize("workers", [2, 4])
def test_on_dask(workers: int, of_cli: dict[str, bytes], tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        xcpnet.sweep(small_sweep(), client, out=tmp_path / "out", shard=SHARDS)
    same(tmp_path / "out", of_cli)


def test_on_dask_whose_workers_are_killed(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    import threading

    over = threading.Event()
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):

        def kill() -> None:
            for _ in range(3):
                if over.wait(0.7):
                    return
                pids = [nanny.process.pid for nanny in cluster.workers.values() if nanny.process]
                for pid in filter(None, pids[:1]):
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass

        killer = threading.Thread(target=kill)
        killer.start()
        xcpnet.sweep(slow_sweep(), client, out=tmp_path / "out", shard=SHARDS, retries=9)
        over.set()
        killer.join()
    assert_as_inline(tmp_path)


def test_on_ray(of_cli: dict[str, bytes], tmp_path: Path) -> None:
    ray = pytest.importorskip("ray")
    try:
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    except Exception as e:  # Ray waits so long for itself and no longer.
        pytest.skip(f"ray: it does not start here: {e}")
    try:
        xcpnet.sweep(small_sweep(), ray, out=tmp_path / "out", shard=SHARDS)
    finally:
        ray.shutdown()
    same(tmp_path / "out", of_cli)


def test_under_mpi(of_cli: dict[str, bytes], tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    if not shutil.which("mpiexec"):
        pytest.skip("mpiexec: pip install mpich")
    (tmp_path / "job.py").write_text(f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
from mpi4py.futures import MPIPoolExecutor
import xcpnet
from conftest import small_sweep
if __name__ == "__main__":
    with MPIPoolExecutor() as pool:
        xcpnet.sweep(small_sweep(), pool, out={str(tmp_path / "out")!r}, shard={SHARDS})
""")
    done = subprocess.run(
        ["mpiexec", "-n", "3", sys.executable, "-m", "mpi4py.futures", "job.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    same(tmp_path / "out", of_cli)


def test_on_submitit(of_cli: dict[str, bytes], tmp_path: Path) -> None:
    """Slurm's interface, with jobs on this machine."""
    submitit = pytest.importorskip("submitit")
    executor = submitit.LocalExecutor(folder=tmp_path / "jobs")
    executor.update_parameters(timeout_min=5)
    xcpnet.sweep(small_sweep(), executor, out=tmp_path / "out", shard=SHARDS)
    same(tmp_path / "out", of_cli)


def test_the_command_line_s_shards_and_python_s_are_one_sweep(
    cli: str, of_cli: dict[str, bytes], tmp_path: Path
) -> None:
    (tmp_path / "s.toml").write_text(SMALL)
    both = [
        subprocess.Popen(
            [
                "sh",
                "-c",
                f'for i in {numbers}; do "$0" sweep s.toml "$@" --shard $i/{SHARDS} || exit; done',
                cli,
                *ARGUMENTS,
                "--out",
                "out",
            ],
            cwd=tmp_path,
            stderr=subprocess.DEVNULL,
        )
        for numbers in ("1 3 5 7", "2 4 6 8")
    ]
    assert [child.wait() for child in both] == [0, 0]
    assert xcpnet.open(tmp_path / "out").missing() == [8, 9, 10, 11]
    xcpnet.sweep(small_sweep(), "processes", out=tmp_path / "out")
    same(tmp_path / "out", of_cli)
    # And the other way round: what Python did, the command line puts together.
    xcpnet.sweep(small_sweep(), "threads", out=tmp_path / "two", shard=SHARDS)
    subprocess.run([cli, "sweep", "--merge", "two"], cwd=tmp_path, check=True, capture_output=True)
    assert bytes_of(tmp_path / "two") == of_cli


def slow_sweep() -> xcpnet.Sweep:
    """One that takes long enough to be killed in the midst of it."""
    s = xcpnet.Scenario.from_text(SMALL, "s.toml")
    return xcpnet.Sweep(s, {"duration": ["20s"], "flow.count": [2, 3]}, range(1, 13))


SLOW = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
import os, xcpnet
from test_sweep import slow_sweep
workers = sys.argv[2] if len(sys.argv) > 2 else None
xcpnet.sweep(slow_sweep(), workers, out=sys.argv[1], shard={SHARDS})
"""


def assert_as_inline(tmp_path: Path) -> None:
    xcpnet.sweep(slow_sweep(), out=tmp_path / "whole", shard=5).compact()
    xcpnet.open(tmp_path / "out").compact()
    assert bytes_of(tmp_path / "out") == bytes_of(tmp_path / "whole")
    assert len(files(tmp_path / "out")) == WHOLE


def begun(out: Path, done: int, child: subprocess.Popen[Any]) -> None:
    """Waits until so many shards are done, or the child has ended."""
    marks = out / "done"
    while child.poll() is None and (len(list(marks.iterdir())) if marks.is_dir() else 0) < done:
        time.sleep(0.01)


def test_killed_at_any_moment_it_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "out"
    moments = random.Random(1)
    kills = 0
    for round in range(20):
        child = subprocess.Popen([sys.executable, "-c", SLOW, str(out)])
        begun(out, min(round // 2, SHARDS - 1), child)
        time.sleep(moments.uniform(0, 0.4))
        kills += child.poll() is None
        child.kill()
        child.wait()
        if (
            kills >= 5
            and xcpnet._store.plan_of(xcpnet._store.store(out))
            and len(xcpnet.open(out).missing()) < 3
        ):
            break
    assert kills > 0, "it was never caught at work"
    xcpnet.sweep(slow_sweep(), out=out)
    assert_as_inline(tmp_path)


def test_interrupted_it_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for executor in ("threads", "processes"):
        child = subprocess.Popen(
            [sys.executable, "-c", SLOW, str(out), executor],
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        begun(out, 3, child)
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGINT)  # as a terminal does
        child.communicate(timeout=120)
    done = len(xcpnet.open(out).missing())
    xcpnet.sweep(slow_sweep(), out=out)
    assert done <= SHARDS - 3
    assert_as_inline(tmp_path)


def test_workers_end_with_whoever_is_killed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    child = subprocess.Popen([sys.executable, "-c", SLOW, str(out), "processes"])
    begun(out, 1, child)
    told = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text()
    workers = [int(pid) for pid in told.split()]
    assert workers, "it was not caught at work"
    child.kill()
    child.wait()
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline, "a worker waits for work that nobody will give it"
        time.sleep(0.05)


class Suicidal(ProcessPoolExecutor):
    """A pool one of whose workers is killed when the second piece of work comes: however fast the
    machine is, there is work left then.
    """

    submitted = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        future = super().submit(fn, *args, **kwargs)
        self.submitted += 1
        if self.submitted == 2:
            os.kill(next(iter(self._processes)), signal.SIGKILL)
        return future


def test_a_pool_whose_worker_is_killed(tmp_path: Path) -> None:
    with (
        pytest.raises(xcpnet.SweepError, match="Call sweep again with a new pool"),
        Suicidal(2) as pool,
    ):
        xcpnet.sweep(slow_sweep(), pool, out=tmp_path / "out", shard=SHARDS)
    made: list[Any] = []

    def make() -> Any:
        made.append(Suicidal(2) if not made else ProcessPoolExecutor(2))
        return made[-1]

    xcpnet.sweep(slow_sweep(), make, out=tmp_path / "out")
    assert_as_inline(tmp_path)


def test_other_sweeps_and_builds_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    xcpnet.sweep(small_sweep(), out=out, shard=2)
    before = files(out)
    other = xcpnet.Sweep(xcpnet.Scenario.from_text(SMALL, "s.toml"), seeds=[1, 2])
    with pytest.raises(xcpnet.SweepError, match="holds another sweep .*other --set; other --seeds"):
        xcpnet.sweep(other, out=out)
    assert files(out) == before
    # A worker of another build.
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["sweep"]["build"] = "0" * 32
    (out / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(xcpnet.SweepError, match="was changed"):
        xcpnet.open(out)
    with pytest.raises(xcpnet.SweepError, match="contains no sweep in shards$"):
        xcpnet.open(tmp_path)
    (tmp_path / "runs.parquet").touch()
    with pytest.raises(xcpnet.SweepError, match="but the tables that `xcpnet sweep` wrote"):
        xcpnet.open(tmp_path)
    with pytest.raises(OSError, match="cannot write /proc/none"):
        xcpnet.sweep(small_sweep(), out="/proc/none")
    with pytest.raises(ValueError, match="shard='soon'"):
        xcpnet.sweep(small_sweep(), out=out, shard="soon")
    with pytest.raises(xcpnet.SweepError, match="a number from 1 to 240"):
        xcpnet.sweep(small_sweep(), out=tmp_path / "none", shard=241)
    with pytest.raises(xcpnet.SweepError, match="2 of 2 shards are not done"):
        small = small_sweep()
        plan = small.plan(2)
        plan.begin(str(tmp_path / "empty"))
        xcpnet.open(tmp_path / "empty").compact()


def test_an_address_that_became_a_path_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for place in (Path("s3://bucket/run8"), "gs:/bucket/run8"):
        with pytest.raises(ValueError, match="pass the address as a text"):
            xcpnet.sweep(small_sweep(), out=place)
        with pytest.raises(ValueError, match="pass the address as a text"):
            xcpnet.open(place)
    with pytest.raises(ValueError, match="an empty text is no place"):
        xcpnet.sweep(small_sweep(), out="")
    with pytest.raises(ValueError, match="an empty text is no place"):
        xcpnet.open("")
    assert not list(tmp_path.iterdir())
    xcpnet.sweep(small_sweep(), out=f"file://{tmp_path}/here", shard=2)
    assert xcpnet.open("here").missing() == []


def test_runs_that_cannot_be_done_are_told_or_kept(tmp_path: Path) -> None:
    """Of a grid too large to be read beforehand, what is wrong with a combination is found on the
    way.
    """
    s = xcpnet.Scenario.from_text(SMALL.replace("200ms", "1ms"), "s.toml").only("XCP")
    grid = {"queue.limit": [400, *range(40, 391, 10)], "queue.target": range(51)}
    sw = xcpnet.Sweep(s, grid)
    with pytest.raises(xcpnet.ScenarioError, match="exceeds its limit"):
        xcpnet.sweep(sw, out=tmp_path / "out", shard=20)
    d = xcpnet.sweep(sw, out=tmp_path / "out", on_error="keep")
    assert d.missing() == []
    assert [run for run, _ in d.failed] == [51 + i for i in range(41, 51)]
    assert "exceeds its limit" in d.failed[0][1]
    with pytest.raises(xcpnet.SweepError, match="10 of 1887 runs failed, run 92 first"):
        d.compact()
    assert len(d.compact(without_failed=True).runs) == 1877
    again = d.retry_failed()
    of_failed = {
        n
        for n in range(20)
        if any(
            n_first <= run < n_end
            for run in range(92, 102)
            for n_first, n_end in [sw.plan(20).bounds(n)]
        )
    }
    assert set(again) == of_failed and d.missing() == again


def test_what_is_half_done_can_be_read(tmp_path: Path) -> None:
    sw = small_sweep()
    d = xcpnet.sweep(sw, out=tmp_path / "out", shard=6)
    os.remove(tmp_path / "out/done/00003.json")
    first, end = sw.plan(6).bounds(3)
    rest = [n for n in range(240) if not first <= n < end]
    assert d.missing() == [3] and d.runs.column("run") == rest
    xcpnet.sweep(sw, out=tmp_path / "out")
    assert d.runs.column("run") == list(range(240))


def test_a_place_that_is_gone_is_not_empty(tmp_path: Path) -> None:
    d = xcpnet.sweep(small_sweep(), out=tmp_path / "out", shard=2)
    assert repr(d).endswith("240 runs, 2 of 2 shards done>")
    shutil.rmtree(tmp_path / "out")
    for ask in (d.missing, lambda: d.runs, lambda: d.failed, d.retry_failed, d.compact):
        with pytest.raises(xcpnet.SweepError, match="no longer in .*/out"):
            ask()
    assert repr(d).endswith("240 runs, no longer there>")


def test_a_forked_child_leaves_the_temporary_directory() -> None:
    code = f"""
import os, sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
import xcpnet
from conftest import small_sweep
d = xcpnet.sweep(small_sweep(), shard=1)
child = os.fork()
if not child:
    sys.exit()
os.waitpid(child, 0)
print(len(d.runs), d.place)
"""
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    rows, place = told.stdout.split()
    assert rows == "240" and not Path(place).exists()


def test_numbers_of_numpy_and_of_enums_are_numbers() -> None:
    np = pytest.importorskip("numpy")
    from xcpnet._sweep import _seeds, _shards

    class Few(IntEnum):
        THREE = 3

    assert [_shards(of) for of in (np.int64(2), Few.THREE, "2.5s", np.float64(4))] == [
        (2, 0.0),
        (3, 0.0),
        (None, 2.5),
        (None, 4.0),
    ]
    for wrong in ("2", "s", -1, 0, -1.0, float("nan"), None):
        with pytest.raises(ValueError, match=f"shard={wrong!r}: write how long"):
            _shards(wrong)
    assert [_seeds(of) for of in (np.int64(3), np.arange(1, 3))] == ["3", "1,2"]
    s = xcpnet.Scenario.from_text(SMALL)
    grid = {"flow.count": np.arange(1, 3), "queue.alpha": [np.float64(0.25), np.float32(0.5)]}
    assert xcpnet.Sweep(s, grid, seeds=np.int64(3)).settings == [
        ("flow.count", ["1", "2"]),
        ("queue.alpha", ["0.25", "0.5"]),
    ]
    assert s.set({"flow.count": Few.THREE}).settings == {"flow.count": "3"}
    n = xcpnet.Network(duration="1s")
    n.link("S", "D", rate="10mbit", delay="5ms", queue=xcpnet.xcp(limit=np.arange(2)))
    with pytest.raises(TypeError, match="^queue: limit: array.* cannot be written as TOML"):
        xcpnet.Sweep(n.flow("S", "D", cc="xcp"))
    with pytest.raises(TypeError, match="^flow.count: array.* cannot be written as TOML"):
        s.set({"flow.count": np.arange(1)})


def test_seeds_and_values_are_written_as_one_types_them() -> None:
    from xcpnet._sweep import _seeds

    assert [_seeds(of) for of in (None, 7, "1..3", range(1, 21), [1, 5, 9], range(3, 4))] == [
        None,
        "7",
        "1..3",
        "1..20",
        "1,5,9",
        "3",
    ]
    s = xcpnet.Scenario.from_text(SMALL).set({"flow.count": 2}).with_seed(5)
    sw = xcpnet.Sweep(s, {"queue.alpha": [0.25, 0.4], "flow.paced": [True, False]})
    assert (sw.settings, sw.seeds, sw.runs) == (
        [
            ("flow.count", ["2"]),
            ("queue.alpha", ["0.25", "0.4"]),
            ("flow.paced", ["true", "false"]),
        ],
        "5",
        8,
    )
