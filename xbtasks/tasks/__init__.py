"""Invoke collections: parse, call, print, return an exit code. No logic."""

from __future__ import annotations

from invoke.collection import Collection

from xbtasks.tasks import ascend, executor, hooks, nvidia, parser, report, root, sim

__all__ = ["ns"]

parser.install()
executor.install()

reports = Collection("report")
reports.add_task(report.show, default=True)
reports.add_task(report.diff)

ns = Collection()
for task in root.TASKS:
    ns.add_task(task)
ns.add_collection(Collection.from_module(ascend))
ns.add_collection(Collection.from_module(nvidia))
ns.add_collection(Collection.from_module(hooks))
ns.add_collection(reports)
ns.add_collection(Collection.from_module(sim))
