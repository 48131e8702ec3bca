"""Networks link by link and flow by flow. Keys are those of docs/scenario.md, ``-`` written ``_``;
what is wrong with them the scenario's reader says."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

Keys = dict[str, Any]


def _keys(given: Mapping[str, Any]) -> Keys:
    return {
        key.rstrip("_").replace("_", "-"): value
        for key, value in given.items()
        if value is not None
    }


class Law(Keys):
    """A router's law: a preset, and any of its choices by its key (docs/scenario.md, "law").

    >>> import xcpnet
    >>> xcpnet.Law(alpha=0.2, beta=0.05, gain="own-rtt")
    {'alpha': 0.2, 'beta': 0.05, 'gain': 'own-rtt'}
    >>> xcpnet.Law("ixcp", max_interval="1s")
    {'preset': 'ixcp', 'max-interval': '1s'}
    """

    def __init__(self, preset: str | None = None, **choices: Any) -> None:
        super().__init__(_keys({"preset": preset, **choices}))


def queue(kind: str, **keys: Any) -> Keys:
    """A queue of a kind: ``queue("red", limit="2bdp")``."""
    return _keys({"kind": kind, **keys})


def xcp(limit: Any = None, law: str | Mapping[str, Any] | None = None, **keys: Any) -> Keys:
    """An XCP router's queue.

    >>> import xcpnet
    >>> xcpnet.xcp(limit="2bdp", law=xcpnet.Law(alpha=0.3))
    {'kind': 'xcp', 'limit': '2bdp', 'law': {'alpha': 0.3}}
    """
    return queue("xcp", limit=limit, law=law, **keys)


def drop_tail(limit: Any = None, **keys: Any) -> Keys:
    """A queue that drops what does not fit."""
    return queue("drop-tail", limit=limit, **keys)


def red(limit: Any = None, **keys: Any) -> Keys:
    """A RED queue."""
    return queue("red", limit=limit, **keys)


class Network:
    """A network in the making; ``run`` and ``Sweep`` take it as it is.

    >>> import xcpnet
    >>> n = xcpnet.Network(duration="2s")
    >>> n = n.link("S", "D", rate="10mbit", delay="20ms", queue=xcpnet.xcp(limit="2bdp"))
    >>> n = n.flow("S", "D", count=2, cc="xcp")
    >>> len(xcpnet.run(n).flows)
    2
    """

    def __init__(self, **keys: Any) -> None:
        self._file = _keys(keys)
        self._links: list[Keys] = []
        self._flows: list[Keys] = []

    def link(
        self,
        a: str,
        b: str,
        *,
        rate: Any = None,
        delay: Any = None,
        queue: Any = None,
        name: str | None = None,
        **keys: Any,
    ) -> Network:
        """Adds a link between two nodes, named ``a-b`` unless a name is given."""
        given = {
            "name": name or f"{a}-{b}",
            "between": [a, b],
            "rate": rate,
            "delay": delay,
            "queue": queue,
            **keys,
        }
        self._links.append(_keys(given))
        return self

    def flow(
        self, source: str, to: str, *, count: int | None = None, cc: str | None = None, **keys: Any
    ) -> Network:
        """Adds flows from one node to another; ``cc`` is the congestion control."""
        if cc is not None and "congestion" in keys:
            raise TypeError("cc is short for congestion: give one of them")
        given = {"from": source, "to": to, "count": count, "congestion": cc, **keys}
        self._flows.append(_keys(given))
        return self

    @classmethod
    def from_networkx(
        cls, graph: Any, defaults: Mapping[str, Any] | None = None, **keys: Any
    ) -> Network:
        """A network with a link for each edge of an undirected networkx graph; the edge's data are
        the link's keys and override ``defaults``. Parallel edges need a ``name`` each.

        >>> import networkx, xcpnet
        >>> graph = networkx.path_graph(3)
        >>> link = {"rate": "10mbit", "delay": "5ms", "queue": "xcp"}
        >>> n = xcpnet.Network.from_networkx(graph, link, duration="1s")
        >>> r = xcpnet.run(n.flow("0", "2", cc="xcp"))
        >>> sorted(r.summary["links"])
        ['0-1', '0-1.reverse', '1-2', '1-2.reverse']
        """
        if graph.is_directed():
            raise ValueError(
                "a link includes both directions: pass graph.to_undirected(), and give what "
                "differs on the way back as `reverse`"
            )
        made = cls(**keys)
        names: set[str] = set()
        for a, b, data in graph.edges(data=True):
            made.link(
                str(a), str(b), **{**(defaults or {}), **{str(k): v for k, v in data.items()}}
            )
            name = made._links[-1]["name"]
            if name in names:
                raise ValueError(f"two edges are named {name}: give each a `name` of its own")
            names.add(name)
        return made

    def to_dict(self) -> Keys:
        """The scenario, as ``Scenario.from_dict`` takes it: a copy, which may be changed."""
        return copy.deepcopy({**self._file, "link": self._links, "flow": self._flows})
