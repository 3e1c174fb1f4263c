"""Invoke collections: parse, call, print, return an exit code. No logic."""

from __future__ import annotations

from invoke.collection import Collection

from xbtasks.tasks import ascend, executor, hooks, nvidia, parser, root, sim

__all__ = ["ns"]

parser.install()
executor.install()

ns = Collection()
for task in root.TASKS:
    ns.add_task(task)
ns.add_collection(Collection.from_module(ascend))
ns.add_collection(Collection.from_module(nvidia))
ns.add_collection(Collection.from_module(hooks))
ns.add_collection(Collection.from_module(sim))
