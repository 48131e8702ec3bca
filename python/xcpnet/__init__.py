"""Explicit congestion control: simulate it, sweep it over many machines, plot it.

>>> import xcpnet
>>> n = xcpnet.Network(duration="5s")
>>> n = n.link("S", "D", rate="10mbit", delay="50ms", queue=xcpnet.xcp(limit="2bdp"))
>>> r = xcpnet.run(n.flow("S", "D", count=4, cc="xcp"))
>>> r.summary["links"]["S-D"]["drops"]
0
"""

from ._dataset import Dataset, open
from ._errors import LabError, Problem, ScenarioError, SweepError
from ._native import BUILD, Table
from ._native import VERSION as __version__
from ._network import Law, Network, drop_tail, queue, red, xcp
from ._results import Result, expect, run, theory
from ._scenario import Scenario
from ._sweep import Sweep, sweep

__all__ = [
    "BUILD",
    "Dataset",
    "LabError",
    "Law",
    "Network",
    "Problem",
    "Result",
    "Scenario",
    "ScenarioError",
    "Sweep",
    "SweepError",
    "Table",
    "__version__",
    "drop_tail",
    "expect",
    "open",
    "queue",
    "red",
    "run",
    "sweep",
    "theory",
    "xcp",
]
