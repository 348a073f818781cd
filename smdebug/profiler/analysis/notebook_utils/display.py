"""Display of bokeh figures in notebooks; elsewhere nothing is shown.

Outside a notebook the figures are kept and can be saved.
"""

import sys
from typing import Any

from smdebug.exceptions import SMDebugError


def import_bokeh() -> Any:
    """Return bokeh with the modules that charts need.

    Raises:
        SMDebugError: bokeh is not installed.
    """
    try:
        import bokeh.io
        import bokeh.layouts
        import bokeh.models
        import bokeh.palettes
        import bokeh.plotting
    except ImportError as error:
        raise SMDebugError("Charts need bokeh 3: pip install 'smdebug-emulator[analysis]'.") from error
    return bokeh


def is_in_notebook() -> bool:
    """Whether the code runs in a kernel that can show figures."""
    interactive = sys.modules.get("IPython")
    shell = interactive.get_ipython() if interactive is not None else None
    return getattr(shell, "kernel", None) is not None


def show_figure(figure: Any) -> Any:
    """Show a figure in a notebook; returns the handle that updates it, or None outside a notebook."""
    if not is_in_notebook():
        return None
    io = import_bokeh().io
    io.output_notebook(hide_banner=True)
    return io.show(figure, notebook_handle=True)


def update_figure(handle: Any) -> None:
    """Send the changes of a figure to the notebook that shows it."""
    if handle is not None:
        import_bokeh().io.push_notebook(handle=handle)


def build_grid(figures: list[Any]) -> Any:
    """Return figures in rows of four; without figures, a text that says so."""
    bokeh = import_bokeh()
    if not figures:
        return bokeh.models.Div(text="Nothing that was recorded is selected.")
    return bokeh.layouts.gridplot(figures, ncols=4)


def build_histogram(source: Any, label: str, width: int, height: int) -> Any:
    """Return a bar chart of a source with the columns `left`, `right` and `top`."""
    figure = import_bokeh().plotting.figure(height=height, width=width)
    figure.quad(
        top="top", bottom=0, left="left", right="right", source=source,
        fill_color="navy", line_color="white", fill_alpha=0.5,
    )  # fmt: skip
    figure.y_range.start = 0
    figure.xaxis.axis_label, figure.yaxis.axis_label = label, "occurrences"
    return figure
