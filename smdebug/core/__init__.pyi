# For type checkers, which do not run `import_aliases.py`: any name here may be a module.
from typing import Any

def __getattr__(name: str) -> Any: ...
