"""Names and paths that would be commands if they reached a shell: each is data, or refused in a line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.workplace import BASE, DOCKERFILE, make_checkout

if TYPE_CHECKING:
    from pathlib import Path

    from tests.workplace import Workplace

pytestmark = pytest.mark.engine

STAGE = "xbuild-nvidia-cuda-13"
WORDS = [
    "$(touch {pwned})",
    "`touch {pwned}`",
    "; touch {pwned};",
    "a\ntouch {pwned}\n",
    "' ; touch {pwned} ; '",
    '" ; touch {pwned} ; "',
    "-oProxyCommand=touch {pwned}",
    "--privileged",
    "|touch {pwned}",
    "\x1b[2J",
    "\u202e",
    "",
    " ",
    "../../etc/passwd",
    "%s%n{{.Id}}",
]


@pytest.fixture
def pwned(place: Workplace) -> Path:
    return place.folder / "pwned"


@pytest.mark.parametrize("name", ["stage", "image", "platform", "builder", "profile"])
def test_a_flag_is_data_or_refused(place: Workplace, pwned: Path, name: str) -> None:
    for word in WORDS:
        text = word.format(pwned=pwned) if "{pwned}" in word else word
        words = (
            ["verify", f"--{name}={text}"]
            if name == "stage"
            else ["verify", STAGE, "--cases", "1", f"--{name}={text}"]
        )
        done = place.inv(*words, "--json")
        assert "Traceback" not in done.err, (text, done.err)
        assert "\x1b" not in done.err
        assert done.code in (2, 4), (text, done.code, done.err)
        assert not pwned.exists(), text
    assert place.left_over() == []


@pytest.mark.parametrize("variable", ["XB_STAGE", "XB_REMOTE_CTX"])
def test_a_folder_may_have_any_name_and_is_only_a_name(place: Workplace, pwned: Path, variable: str) -> None:
    odd = 'it\'s "x" $(touch {pwned}) `touch {pwned}`; touch {pwned} | & ( ) < > * ? [a] {{b}} \\ # ~ ! -rf'
    folder = place.folder / "odd" / odd.format(pwned="pwned")
    done = place.inv("verify", STAGE, "--cases", "1", "--json", **{variable: str(folder)})
    assert done.code == 0, done.text
    assert folder.is_dir()
    assert not list(place.folder.rglob("pwned"))
    assert place.inv("clean", "--all", **{variable: str(folder)}).code == 0
    assert not folder.exists()


def test_a_checkout_may_have_any_name(place: Workplace) -> None:
    odd = place.folder / 'it\'s a "repo" $(touch pwned) `touch pwned`; -x'
    stage = "xbuild-nvidia-cuda-x"
    files: dict[str, bytes | str] = {"a b/`touch pwned`/;f.txt": "hello", "-rf": "x"}
    text = f'FROM {BASE} AS {stage}\nCOPY ["a b/`touch pwned`/;f.txt", "-rf", "/out/libvgpu.so/"]\n'
    make_checkout(odd, text, files)
    done = place.inv("verify", stage, "--cases", "1", "--json", XB_REPO=str(odd))
    assert done.code == 1, done.text
    (context,) = place.sent()
    sent = {str(path.relative_to(context)) for path in context.rglob("*") if path.is_file()}
    assert sent == {DOCKERFILE, *files}
    assert not list(place.folder.rglob("pwned"))


@pytest.mark.parametrize(
    "dockerfile",
    ["../Dockerfile", "/etc/passwd", "-x", "a b/Docker'file $(touch pwned)", "", "pack", "no\nne"],
)
def test_a_dockerfile_may_lie_anywhere_in_the_checkout_and_nowhere_else(
    place: Workplace, dockerfile: str
) -> None:
    stage = "xbuild-nvidia-cuda-x"
    folder = make_checkout(place.folder / "checkout", "FROM scratch AS other\n")
    inside = dockerfile.startswith("a b")
    if inside:
        target = folder / dockerfile
        target.parent.mkdir(parents=True)
        target.write_text(f"FROM {BASE} AS {stage}\nRUN mkdir /out\n")
    (place.folder / "Dockerfile").write_text(f"FROM {BASE} AS {stage}\n")
    done = place.inv(
        "verify", stage, "--cases", "1", "--json", f"--dockerfile={dockerfile}", XB_REPO=str(folder)
    )
    assert done.code == (1 if inside else 2), done.text
    assert "Traceback" not in done.err
    assert not list(place.folder.rglob("pwned"))


@pytest.mark.parametrize(
    "name", ["xbuild-nvidia-cuda-$(touch pwned)", "xbuild-nvidia-cuda-A", "xbuild-nvidia-cuda--x"]
)
def test_stage_names_of_a_dockerfile_are_data(place: Workplace, name: str) -> None:
    folder = make_checkout(place.folder / "checkout", f"FROM {BASE} AS {name}\nRUN mkdir /out\n")
    listed = place.inv("stages", "--json", XB_REPO=str(folder))
    assert listed.code in (0, 2), listed.text
    done = place.inv("verify", name, "--cases", "1", "--json", XB_REPO=str(folder), XB_IMAGE=None)
    assert done.code in (1, 2), done.text
    assert "Traceback" not in done.text
    assert not list(place.folder.rglob("pwned"))


def test_scripts_hold_values_only_as_quoted_words(place: Workplace) -> None:
    """What was sent to the host is in the evidence: nothing of the user stands in it unquoted."""
    odd = place.folder / "a$(b)'c\"d"
    assert place.inv("verify", STAGE, "--cases", "1", XB_STAGE=str(odd)).code == 0
    quoted = "a$(b)'\"'\"'c\"d"
    found = 0
    for script in place.evidence()[-1].glob("steps/*/script.sh"):
        text = script.read_text()
        assert "a$(b)'c\"d" not in text
        found += text.count(quoted)
    assert found >= 3
    assert json.loads((odd / ".xbtasks-nvidia.json").read_text())["stage"] == STAGE
