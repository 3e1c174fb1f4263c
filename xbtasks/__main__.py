"""The ``xb`` program: the tasks of this package under a name of their own, from any directory."""

from __future__ import annotations

import os
import sys

from invoke.program import Program

from xbtasks import __version__

__all__ = ["main"]


def main() -> None:
    """Run ``xb``. Who reads its help or list may stop, as ``head`` does; tasks see to that themselves."""
    from xbtasks.tasks import ns

    program = Program(version=__version__, namespace=ns, name="xbtasks", binary="xb", binary_names=["xb"])
    try:
        program.run()
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
