"""The web console: jobs, verdicts and tensors in a browser.

Its sources are in ``web``, and ``build`` builds them.
"""

from pathlib import Path

CONSOLE = "/console"
"""The page's address. What it loads is below the emulator's own prefix, which no bucket can have."""
ASSETS = "/_emulator/console/"
BUILT = Path(__file__).with_name("built")
"""The built page: included in the wheel, or built by ``make`` in a checkout."""
