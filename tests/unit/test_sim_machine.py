"""Where the simulated host can run, and the one line that says why not."""

from __future__ import annotations

import pytest

from xbtasks.errors import ExitCode, Refused
from xbtasks.sim import machine
from xbtasks.sim.machine import Machine, parse_os_release

DEBIAN_12 = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_CODENAME=bookworm\n'


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Pretend to be a fitting machine; the test takes one thing away."""
    monkeypatch.setattr(machine.os, "geteuid", lambda: 0)
    monkeypatch.setattr(machine.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(machine, "_os_release", lambda: DEBIAN_12)
    monkeypatch.setattr(machine, "_architecture", lambda: "amd64")
    return monkeypatch


def test_debian_12_takes_the_engine_of_the_next_release(on: pytest.MonkeyPatch) -> None:
    found = Machine.examine()
    assert found == Machine("amd64", "bookworm")
    assert (found.engine_release, found.base_release) == ("trixie", "trixie")


def test_debian_13_takes_its_own(on: pytest.MonkeyPatch) -> None:
    on.setattr(machine, "_os_release", lambda: "ID=debian\nVERSION_CODENAME=trixie\n")
    assert Machine.examine().engine_release == "trixie"


def refusal() -> str:
    with pytest.raises(Refused) as caught:
        Machine.examine()
    assert caught.value.exit_code is ExitCode.USAGE
    assert caught.value.hint
    assert "\n" not in str(caught.value)
    return caught.value.message


def test_not_root(on: pytest.MonkeyPatch) -> None:
    on.setattr(machine.os, "geteuid", lambda: 1000)
    assert refusal() == "the simulated host needs root: it starts a container engine"


def test_no_apt(on: pytest.MonkeyPatch) -> None:
    on.setattr(machine.shutil, "which", lambda name: None if name.startswith("apt") else name)
    assert refusal() == "the simulated host needs apt-get, apt-config: not found"


@pytest.mark.parametrize("text", ["", "ID=fedora\nVERSION_ID=41\nPRETTY_NAME=Fedora\n", "ID=debian\n"])
def test_another_system(on: pytest.MonkeyPatch, text: str) -> None:
    on.setattr(machine, "_os_release", lambda: text)
    assert refusal().startswith("the simulated host knows Debian 12 and 13, not ")


def test_another_architecture(on: pytest.MonkeyPatch) -> None:
    on.setattr(machine, "_architecture", lambda: "riscv64")
    assert refusal() == "the simulated host knows amd64 and arm64, not riscv64"


def test_os_release_is_read_with_quotes_and_comments() -> None:
    assert parse_os_release("# comment\nID=debian\nNAME='Debian GNU/Linux'\nHOME_URL=\"a=b\"\n\n") == {
        "ID": "debian",
        "NAME": "Debian GNU/Linux",
        "HOME_URL": "a=b",
    }
