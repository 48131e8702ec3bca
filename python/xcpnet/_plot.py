"""Curves with matplotlib and as xarray; both are extras (``pip install 'xcpnet[plot,xarray]'``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

    from ._results import Result

# The report's colours, in its order (crates/xcp-report/assets/report.css; a test holds them
# together).
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#b0569b", "#c98a00", "#4ba6d9", "#5d4a9c", "#7a6a4f"]
MOST = 12  # flows drawn one by one

Curves = dict[str, dict[str, tuple[list[float], list[float]]]]


def curves(result: Result, of: str) -> Curves:
    """By quantity and subject: times and values, missing ones as NaN."""
    table = result.series(of)
    if not table.column_names:
        return {}
    subject = of.rstrip("s")
    names, times = table.column(subject), table.column("time_s")
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        rows.setdefault(name, []).append(row)
    found: Curves = {}
    for quantity in table.column_names[2:]:
        values = table.column(quantity)
        found[quantity] = {}
        for name, where in rows.items():
            own = [float("nan") if values[i] is None else values[i] for i in where]
            if any(v == v for v in own):
                found[quantity][name] = ([times[i] for i in where], own)
    return found


def to_xarray(result: Result) -> xarray.Dataset:
    import xarray as xr

    parts = []
    for of in ("links", "flows"):
        subject = of.rstrip("s")
        for quantity, by_name in curves(result, of).items():
            arrays = [
                xr.DataArray(
                    values, coords={"time": times}, dims="time", name=quantity
                ).expand_dims({subject: [name]}, axis=1)
                for name, (times, values) in by_name.items()
            ]
            if arrays:
                parts.append(
                    xr.concat(arrays, dim=subject, join="outer").transpose("time", subject)
                )
    return xr.merge(parts, join="outer", compat="override").assign_attrs(title=result.title)


def bottleneck(result: Result) -> str:
    """The most used link direction."""
    links: dict[str, dict[str, float]] = result.summary["links"]
    return max(
        links, key=lambda name: (links[name]["utilisation"], links[name]["queue_mean"]), default=""
    )


def plot(result: Result, quantities: tuple[str, ...], link: str | None) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as e:
        raise ImportError("plots need matplotlib: pip install 'xcpnet[plot]'") from e

    class Shown(Figure):
        """Notebooks show it without being asked to draw figures inline."""

        def _repr_png_(self) -> bytes:
            import io

            out = io.BytesIO()
            self.savefig(out, format="png", dpi=120)
            return out.getvalue()

    links = dict.fromkeys(name for one in result.summaries for name in one["links"])
    if link is not None and link not in links:
        raise ValueError(
            f'there is no link "{link}" in these runs; the links are {", ".join(links)}'
        )
    figure = Shown(figsize=(7, 2.4 * len(quantities)), layout="constrained")
    panels: Any = figure.subplots(len(quantities), 1, sharex=True, squeeze=False)[:, 0]
    known: set[str] = set()
    for number, one in enumerate(result):
        of_links, of_flows = curves(one, "links"), curves(one, "flows")
        known |= set(of_links) | set(of_flows)
        chosen = link or bottleneck(one)
        for panel, quantity in zip(panels, quantities):
            colour = COLOURS[number % len(COLOURS)]
            label = one.variants[0] or None
            if quantity in of_links:
                drawn = {chosen: of_links[quantity].get(chosen, ([], []))}
            else:
                drawn = dict(list(of_flows.get(quantity, {}).items())[:MOST])
            for i, (name, (times, values)) in enumerate(drawn.items()):
                own = colour if len(result) > 1 else COLOURS[i % len(COLOURS)]
                panel.plot(
                    times,
                    values,
                    color=own,
                    linewidth=1.1,
                    label=(label if i == 0 else None) if len(result) > 1 else name,
                )
    if not known:
        raise ValueError('there are no curves: `series=False` or sample = "off" left them out')
    for panel, quantity in zip(panels, quantities):
        if quantity not in known:
            raise ValueError(f"no quantity {quantity}; there are {', '.join(sorted(known))}")
        panel.set_ylabel(quantity.replace("_", " "))
        panel.set_ylim(bottom=min(0, panel.get_ylim()[0]))
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(color="#e3e3e3", linewidth=0.6)
        if panel.get_legend_handles_labels()[1]:
            panel.legend(frameon=False, fontsize="small")
    panels[-1].set_xlabel("time, s")
    panels[0].set_title(result.title, fontsize="medium", loc="left")
    return figure
