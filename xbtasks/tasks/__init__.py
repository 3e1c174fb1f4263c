"""Invoke collections: parse, call, print, return an exit code. No logic."""

from __future__ import annotations

from invoke.collection import Collection

from xbtasks.tasks import cases, completion, executor, hooks, overview, parser, report, root, sim

__all__ = ["ns"]

parser.install()
executor.install()
completion.install()
overview.install()

reports = Collection("report")
reports.add_task(report.show, default=True)
reports.add_task(report.diff)

ns = Collection()
"""All tasks, for ``xb`` and for a ``tasks.py``."""
for task in root.TASKS:
    ns.add_task(task)
for backend in cases.collections():
    ns.add_collection(backend)
ns.add_collection(Collection.from_module(hooks))
ns.add_collection(reports)
ns.add_collection(Collection.from_module(sim))
