"""Object stores, against a server that speaks S3 (moto): the same bytes; a writer that is killed
leaves nothing that is read.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
import xcpnet
from conftest import TABLES, small_sweep
from xcpnet import _store

BUCKET = "sweeps"


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    server_module = pytest.importorskip("moto.server")
    boto3 = pytest.importorskip("boto3")
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    environment = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": url,
        "AWS_ALLOW_HTTP": "true",
    }
    kept = {key: os.environ.get(key) for key in environment}
    os.environ.update(environment)
    boto3.client("s3").create_bucket(Bucket=BUCKET)
    try:
        yield f"s3://{BUCKET}"
    finally:
        server.stop()
        for key, value in kept.items():
            os.environ.pop(key) if value is None else os.environ.update({key: value})


def of_store(place: str) -> dict[str, bytes | None]:
    where = _store.store(place)
    return {name: where.get(f"{name}.parquet") for name in TABLES}


@pytest.mark.parametrize("by", ["obstore", "fsspec"])
def test_the_same_bytes(
    by: str, s3: str, of_cli: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("obstore" if by == "obstore" else "s3fs")
    if by == "fsspec":
        monkeypatch.setattr(_store, "_obstore", lambda place: None)
    place = f"{s3}/{by}"
    d = xcpnet.sweep(small_sweep(), "threads", out=place, shard=5)
    assert d.missing() == []
    assert len(d.runs) == 240
    d.compact()
    assert of_store(place) == of_cli
    assert xcpnet.open(place).runs.column("run") == list(range(240))
    with pytest.raises(xcpnet.SweepError, match="holds another sweep"):
        xcpnet.sweep(xcpnet.Sweep(small_sweep().scenario, seeds=[1]), out=place)
    with pytest.raises(xcpnet.SweepError, match="contains no sweep"):
        xcpnet.open(f"{s3}/nothing")


def test_by_processes(s3: str, of_cli: dict[str, bytes]) -> None:
    """The parent has reached the store before it starts its workers."""
    pytest.importorskip("obstore")
    place = f"{s3}/processes"
    xcpnet.sweep(small_sweep(), "processes", out=place, shard=5).compact()
    assert of_store(place) == of_cli


def test_a_forked_worker_is_told_what_it_lacks(s3: str) -> None:
    pytest.importorskip("obstore")
    fork = multiprocessing.get_context("fork")
    with (
        ProcessPoolExecutor(1, mp_context=fork) as pool,
        pytest.raises(xcpnet.SweepError, match="a forked process cannot reach s3://"),
    ):
        xcpnet.sweep(small_sweep(), pool, out=f"{s3}/forked", shard=2)


def test_a_killed_writer_leaves_nothing_that_is_read(s3: str, tmp_path: Path) -> None:
    pytest.importorskip("obstore")
    from test_sweep import SHARDS, SLOW, slow_sweep

    place = f"{s3}/killed"
    where = _store.store(place)
    kills = 0
    for wanted in (0, 1, 3, 5, 7):
        child = subprocess.Popen(
            [sys.executable, "-c", SLOW, place, "processes"], start_new_session=True
        )
        while child.poll() is None and len(where.names("done")) < wanted:
            time.sleep(0.05)
        kills += child.poll() is None
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        assert len(where.names("done")) >= wanted, "a writer ended before it had written"
        plan = _store.plan_of(where)
        if plan is None:
            continue
        # Whatever is marked as done is whole.
        d = xcpnet.open(place)
        missing = set(d.missing())
        expected = [
            run for n in range(SHARDS) if n not in missing for run in range(*plan.bounds(n))
        ]
        assert (d.runs.column("run") if expected else []) == expected
    assert kills > 0, "it was never caught at work"
    xcpnet.sweep(slow_sweep(), out=place, shard=SHARDS).compact()
    xcpnet.sweep(slow_sweep(), out=tmp_path / "whole", shard=3).compact()
    assert of_store(place) == {n: (tmp_path / f"whole/{n}.parquet").read_bytes() for n in TABLES}
