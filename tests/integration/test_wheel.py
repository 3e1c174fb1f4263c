"""The package as a user installs it: whole, and used inside an operator checkout, which stays as it was."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.gitkit import Repository
from tests.wheelkit import Installed, build, install, tracked_files
from tests.workplace import PROJECT, SAMPLE
from xbtasks.sessions import FIELD_STAGES

if TYPE_CHECKING:
    from tests.workplace import Workplace


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tracked_files(), tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(wheel, tmp_path_factory.mktemp("installed") / "venv")


@pytest.fixture
def operator(tmp_path: Path) -> Repository:
    """Return a git checkout of the sample, with folders in it that have the names of our modules."""
    folder = tmp_path / "operator"
    shutil.copytree(SAMPLE, folder)
    for name in ("xbtasks", "invoke", "yaml", "nox"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise SystemExit('imported from the checkout')\n")
    found = Repository(folder)
    found.git("init", "-q", "-b", "main")
    found.git("add", ".")
    found.git("commit", "-q", "-m", "operator")
    return found


def unchanged(operator: Repository) -> bool:
    return not operator.git("status", "--porcelain", "--ignored")


def test_the_wheel_holds_the_files_of_the_package_and_nothing_else(wheel: Path) -> None:
    package = {str(path): path for path in tracked_files() if path.parts[0] == "xbtasks"}
    with zipfile.ZipFile(wheel) as archive:
        held = {entry.filename: entry for entry in archive.infolist() if ".dist-info/" not in entry.filename}
        assert set(held) == set(package)
        for name, entry in held.items():
            assert archive.read(entry) == (PROJECT / name).read_bytes()
            # the mode of a build input is part of its stage's digest
            assert bool(entry.external_attr >> 16 & 0o100) == os.access(PROJECT / name, os.X_OK), name


def test_the_installed_files_are_those_of_the_wheel(installed: Installed) -> None:
    package = installed.site / "xbtasks"
    there = {path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert {path.relative_to(installed.site) for path in there} == {
        path for path in tracked_files() if path.parts[0] == "xbtasks"
    }
    assert not (installed.site / "tests").exists()


def test_its_metadata_is_complete(installed: Installed) -> None:
    (folder,) = installed.site.glob("xbtasks-*.dist-info")
    lines = (folder / "METADATA").read_text().splitlines()
    for field in ("Version: 0.", "License-Expression: Apache-2.0", "Requires-Python: >=3.11", "Keywords: "):
        assert any(line.startswith(field) for line in lines), field
    assert "Classifier: Typing :: Typed" in lines
    assert "Description-Content-Type: text/markdown" in lines
    assert (folder / "licenses/LICENSE").is_file()


def test_it_works_inside_an_operator_checkout_and_leaves_it_alone(
    installed: Installed, operator: Repository
) -> None:
    inside = operator.folder / "pack/gpustack-operator"
    assert "verify" in installed.run("xb", "--list", cwd=inside).stdout
    stages = json.loads(installed.run("xb", "stages", "--json", cwd=inside).stdout)
    assert tuple(each["name"] for each in stages["stages"]) == FIELD_STAGES
    assert stages["repo"] == str(operator.folder)
    knobs = json.loads(installed.run("xb", "knobs", "--json", cwd=inside).stdout)["knobs"]
    with_file = installed.run("python", str(PROJECT / "xb"), "knobs", "--json", cwd=inside).stdout
    assert "config/invoke.yaml" in with_file
    assert "config/invoke.yaml" not in str(knobs)
    assert {each["name"]: each["value"] for each in knobs} == {
        each["name"]: each["value"] for each in json.loads(with_file)["knobs"]
    }
    module = installed.run("python", "-P", "-m", "xbtasks", "stages", "--json", cwd=operator.folder)
    assert json.loads(module.stdout) == stages
    assert unchanged(operator)


def test_the_installed_sample_has_the_digests_of_the_source(installed: Installed, tmp_path: Path) -> None:
    def digests(checkout: Path) -> dict[str, dict[str, str]]:
        done = installed.run("xb", "stages", "--json", "--repo", str(checkout), cwd=tmp_path)
        return {each["name"]: each["digests"] for each in json.loads(done.stdout)["stages"]}

    assert digests(installed.site / "xbtasks/sim/operator") == digests(SAMPLE)


def test_every_module_can_be_imported(installed: Installed, tmp_path: Path) -> None:
    code = (
        "import importlib, pkgutil, xbtasks; print(xbtasks.__file__)\n"
        "for each in pkgutil.walk_packages(xbtasks.__path__, 'xbtasks.'):\n"
        "    if not each.name.endswith('__main__'): importlib.import_module(each.name)\n"
    )
    done = installed.run("python", "-c", code, cwd=tmp_path)
    assert Path(done.stdout.split()[0]).is_relative_to(installed.site)


def test_files_beside_an_installed_package_are_none_of_its_own(
    installed: Installed, operator: Repository
) -> None:
    foreign = [installed.site / "config/invoke.yaml", installed.site / "tests/test_x.py"]
    for path in foreign:
        path.parent.mkdir()
        path.write_text("aicore: 77\n")
    try:
        assert " 77 " not in installed.run("xb", "knobs", cwd=operator.folder).stdout
        done = installed.run("xb", "test", cwd=operator.folder, code=2)
        assert "they come with the source checkout" in done.stderr
        assert not (installed.site / ".venv").exists()
    finally:
        for path in foreign:
            shutil.rmtree(path.parent)
    assert unchanged(operator)


def test_inv_and_nox_need_one_line_each_in_the_operators_files(
    installed: Installed, operator: Repository
) -> None:
    shutil.rmtree(operator.folder / "invoke")
    shutil.rmtree(operator.folder / "nox")
    (operator.folder / "tasks.py").write_text("from xbtasks.tasks import ns\n")
    (operator.folder / "noxfile.py").write_text("import xbtasks.noxsessions\n")
    shutil.rmtree(operator.folder / "xbtasks")
    shutil.rmtree(operator.folder / "yaml")
    operator.git("add", ".")
    operator.git("commit", "-q", "-m", "tasks")
    quiet = {"PYTHONDONTWRITEBYTECODE": "1"}
    listed = installed.run("inv", "--list", cwd=operator.folder / "pack", variables=quiet).stdout
    assert "verify" in listed
    done = installed.run("nox", "--list", "--json", cwd=operator.folder, variables=quiet)
    names = {each["session"] for each in json.loads(done.stdout)}
    assert {f"verify(stage='{stage}')" for stage in FIELD_STAGES} <= names
    assert {"matrix", "demo"} <= names
    assert "tests" not in names
    assert unchanged(operator)


def test_what_it_says_to_type_is_there(installed: Installed, operator: Repository) -> None:
    words = ("matrix", "--emit", "json", "--stages", "*-13", "--cases", "1")
    jobs = json.loads(installed.run("xb", *words, cwd=operator.folder).stdout)["jobs"]
    assert jobs
    assert all(job["command"].startswith("xb verify ") for job in jobs)
    said = installed.run("xb", "sim.status", cwd=operator.folder, code=3).stdout
    assert f"; `{installed.folder}/bin/xb sim.up` starts it" in said


@pytest.mark.engine
def test_it_builds_and_judges_a_stage_of_the_checkout_around(
    installed: Installed, operator: Repository, place: Workplace
) -> None:
    xb = installed.folder / "bin/xb"
    words = ("verify", "xbuild-nvidia-cuda-13", "--cases", "1", "--json")
    done = place.run(xb, *words, cwd=operator.folder, XB_REPO=None)
    assert done.code == 0, done.text
    result = json.loads(done.out)
    assert result["verdict"] == "PASS"
    assert [build["stage"] for build in result["builds"]] == ["xbuild-nvidia-cuda-13"]
    assert place.run(xb, "replay", result["evidence"], cwd=operator.folder, XB_REPO=None).code == 0
    assert unchanged(operator)
