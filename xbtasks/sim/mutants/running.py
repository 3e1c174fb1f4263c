"""Running variants side by side on the simulated host, each on cards that no other has meanwhile."""

from __future__ import annotations

import os
import shutil
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from uuid import NAMESPACE_URL, uuid5

from xbtasks.backends import BACKENDS
from xbtasks.sim.drivers.inventory import write_part
from xbtasks.sim.lock import locked
from xbtasks.sim.mutants.model import VENDORS
from xbtasks.sim.mutants.trial import Ending, Trial, perform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from xbtasks.sim.mutants.model import Variant
    from xbtasks.sim.paths import SimPaths

__all__ = ["run_variants", "summary"]

_CARDS: Final = (0, 1)
_MOST: Final = 6  # two on the cards of each vendor, and two that need none
_DEFAULT: Final[dict[str, dict[str, object]]] = {vendor: {"cards": [{}, {}]} for vendor in VENDORS}


def run_variants(
    variants: Sequence[Variant],
    paths: SimPaths,
    environment: Mapping[str, str],
    say: Callable[[str], None],
) -> list[Trial]:
    """Try all ``variants`` and return the trials, in the order in which they ended.

    The inventory of the simulated host is changed meanwhile, and is afterwards what it was.
    """
    folder = paths.state / "mutants"
    with (
        locked(folder, lambda: say("waiting: another process tries mutants on this host")),
        _inventory(paths),
    ):
        for left in folder.glob("trial-*"):
            shutil.rmtree(left)
        return _Runner(variants, paths, environment, say).run()


@contextmanager
def _inventory(paths: SimPaths) -> Iterator[None]:
    """Give the host its default cards, and back at the end what it had."""
    before = paths.inventory.read_bytes() if paths.inventory.exists() else None
    try:
        for vendor, part in _DEFAULT.items():
            _give(paths, vendor, part)
        yield
    finally:
        if before is None:
            paths.inventory.unlink(missing_ok=True)
        else:
            paths.inventory.write_bytes(before)


def _give(paths: SimPaths, vendor: str, part: Mapping[str, Any]) -> None:
    """Give the host these cards. GPUs have ids of this host's own: a card is held by its id on a machine.

    NPUs have that anyhow.
    """
    cards = [
        {"uuid": f"GPU-{uuid5(NAMESPACE_URL, f'{paths.state} card {index}')}", **card}
        if vendor == "nvidia"
        else card
        for index, card in enumerate(part["cards"])
    ]
    write_part(paths.inventory, vendor, {**part, "cards": cards})


class _Runner:
    """Starts each variant once the cards that it takes are free."""

    def __init__(
        self,
        variants: Sequence[Variant],
        paths: SimPaths,
        environment: Mapping[str, str],
        say: Callable[[str], None],
    ) -> None:
        self._waiting = list(variants)
        self._total = len(variants)
        self._paths = paths
        self._environment = environment
        self._say = say
        self._free = {name: set(_CARDS if name in VENDORS else ()) for name in BACKENDS}
        self._running: dict[Future[Trial], tuple[Variant, tuple[int, ...]]] = {}
        self._trials: list[Trial] = []

    def run(self) -> list[Trial]:
        """Run everything; an interrupt waits for what has begun."""
        side_by_side = min(_MOST, 3 * (os.cpu_count() or 1))
        with ThreadPoolExecutor(side_by_side) as pool:
            while self._waiting or self._running:
                while len(self._running) < side_by_side and self._start(pool):
                    pass
                done, _ = wait(self._running, return_when=FIRST_COMPLETED)
                for future in done:
                    self._finish(future)
        return self._trials

    def _start(self, pool: ThreadPoolExecutor) -> bool:
        for variant in self._waiting:
            free = sorted(self._free[variant.vendor])
            if len(free) < variant.places:
                continue
            self._waiting.remove(variant)
            taken = tuple(free[: variant.places])
            self._free[variant.vendor] -= set(taken)
            if variant.cards is not None:
                _give(self._paths, variant.vendor, variant.cards)
            card = taken[0] if taken else None
            self._running[pool.submit(self._try, variant, card)] = (variant, taken)
            return True
        return False

    def _try(self, variant: Variant, card: int | None) -> Trial:
        begun = time.monotonic()
        folder: Path = self._paths.state / "mutants" / f"trial-{variant.name}"
        folder.mkdir()
        ending, text = perform(variant, folder, self._environment, card)
        return Trial(variant, ending, text, time.monotonic() - begun)

    def _finish(self, future: Future[Trial]) -> None:
        variant, taken = self._running.pop(future)
        if variant.cards is not None:
            _give(self._paths, variant.vendor, _DEFAULT[variant.vendor])
        self._free[variant.vendor] |= set(taken)
        trial = future.result()
        self._trials.append(trial)
        self._say(f"[{len(self._trials):3}/{self._total}] {trial.line}")


def summary(trials: Sequence[Trial]) -> str:
    """Return the last line: how many there were and what became of them."""
    mutants = [trial for trial in trials if not trial.variant.good]
    good = [trial for trial in trials if trial.variant.good]
    killed = sum(trial.right for trial in mutants)
    survived = sum(trial.ending is Ending.SURVIVED for trial in mutants)
    unclear = len(mutants) - killed - survived
    text = f"{len(mutants)} mutants, {killed} killed, {survived} survived"
    if unclear:
        text += f", {unclear} not judged"
    return f"{text}; {len(good)} good, {sum(not trial.right for trial in good)} failed"
