"""The root Invoke collection."""

from xbtasks.tasks import ns

__all__ = ["ns"]
