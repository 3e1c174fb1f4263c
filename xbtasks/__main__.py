"""The ``xb`` program: the tasks of this package under a name of their own, from any directory."""

from __future__ import annotations

from xbtasks.interrupts import end_at_once, release

__all__ = ["main"]


def main() -> None:
    """Run ``xb``."""
    end_at_once()
    release()
    from xbtasks.streams import install

    install()
    from invoke.program import Program

    from xbtasks import __version__
    from xbtasks.tasks import ns

    program = Program(version=__version__, namespace=ns, name="xbtasks", binary="xb", binary_names=["xb"])
    program.run()


if __name__ == "__main__":
    main()
