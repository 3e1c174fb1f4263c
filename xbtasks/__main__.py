"""The ``xb`` program: the tasks of this package under a name of their own, from any directory."""

from __future__ import annotations

from invoke.program import Program

from xbtasks import __version__

__all__ = ["main"]


def main() -> None:
    """Run ``xb``."""
    from xbtasks.tasks import ns

    Program(version=__version__, namespace=ns, name="xbtasks", binary="xb", binary_names=["xb"]).run()


if __name__ == "__main__":
    main()
