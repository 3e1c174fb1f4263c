"""The ``xb`` program: the tasks of this package under a name of their own, from any directory."""

from __future__ import annotations

import sys

from xbtasks.interrupts import end_at_once, release

__all__ = ["main"]


def main() -> None:
    """Run ``xb``."""
    end_at_once()
    release()
    from xbtasks.streams import install, loss

    install()
    from invoke.program import Program

    from xbtasks import __version__
    from xbtasks.tasks import ns

    program = Program(version=__version__, namespace=ns, name="xbtasks", binary="xb", binary_names=["xb"])
    try:
        program.run()
    except SystemExit as end:
        lost = loss()
        if end.code or lost is None:
            raise
        print(f"error: {lost}", file=sys.stderr)  # of a list or a help text; tasks tell it themselves
        raise SystemExit(lost.exit_code) from end


if __name__ == "__main__":
    main()
