"""The root Invoke collection."""

import sys

# Invoke turns bytecode caching off; every start would then compile these modules anew.
sys.dont_write_bytecode = False

from xbtasks.tasks import ns  # noqa: E402

__all__ = ["ns"]
