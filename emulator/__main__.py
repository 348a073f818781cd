"""``python -m emulator``, and the ``smdebug-emulator`` command."""

from __future__ import annotations

from emulator.cli import main

if __name__ == "__main__":
    main()
