"""The root Invoke collection."""

import sys
from pathlib import Path

# Invoke turns bytecode caching off; every start would then compile these modules anew.
sys.dont_write_bytecode = False
sys.pycache_prefix = str(Path(__file__).resolve().parent / ".venv/pycache")

from xbtasks.interrupts import end_at_once  # noqa: E402

end_at_once()

from xbtasks.tasks import ns  # noqa: E402

__all__ = ["ns"]
