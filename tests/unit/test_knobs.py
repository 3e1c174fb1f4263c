from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from xbtasks.backends import BACKENDS
from xbtasks.backends.profiles import profile_names
from xbtasks.knobs.files import read_knob_file
from xbtasks.knobs.resolve import resolve
from xbtasks.knobs.settings import Settings, describe
from xbtasks.knobs.table import KNOBS, Group, knob, knobs_for

PROJECT_FILE = Path(__file__).parents[2] / "config" / "invoke.yaml"

# SPEC 2, as it is written there
SPEC = {
    "XB_MODE": "--mode",
    "XB_HOST": "--host",
    "XB_REPO": "--repo",
    "XB_DOCKERFILE": "--dockerfile",
    "XB_PLATFORM": "--platform",
    "XB_IMAGE": "--image",
    "XB_WORKLOAD_IMAGE": "--workload-image",
    "XB_STAGE": "--stage-dir",
    "XB_REMOTE_CTX": "--remote-ctx",
    "XB_CTR": "--engine",
    "XB_BUILDER": "--builder",
    "XB_SSH_CONFIG": "--ssh-config",
    "XB_HOST_KEYS": "--host-keys",
    "XB_CONNECT_TIMEOUT": "",
    "XB_TIMEOUT": "",
    "XB_BUILD_TIMEOUT": "",
    "XB_BANNER_RE": "",
    "XB_YES": "--yes",
    "XB_NPU": "--npu",
    "XB_CHIP": "--chip",
    "XB_VNPU": "--vnpu",
    "XB_AICORE": "--aicore",
    "XB_MEM": "--mem",
    "XB_GPU": "--gpu",
    "XB_GPUS": "--gpus",
    "XB_SM": "--sm",
    "XB_PROFILE": "--profile",
    "XB_MAX_GLIBC": "--max-glibc",
}


def test_the_table_is_the_specification() -> None:
    assert {entry.env: entry.flag for entry in KNOBS} == SPEC
    assert len(KNOBS) == len(SPEC)


def test_every_knob_is_a_field_of_the_settings() -> None:
    assert [entry.name for entry in KNOBS] == [
        field.name for field in fields(Settings) if field.name not in ("origins", "warnings")
    ]


@pytest.mark.parametrize("entry", KNOBS, ids=lambda entry: entry.name)
def test_a_knob_says_everything(entry: object) -> None:
    one = next(known for known in KNOBS if known is entry)
    assert one.name.isidentifier()
    assert one.flag in ("", f"--{one.name.replace('_', '-')}")
    assert one.help
    assert one.accepts
    assert one.groups
    assert bool(one.default) != bool(one.unset), "a literal default, or how it is found"
    assert one.default_text
    for text in (one.help, one.accepts, one.default_text):
        assert text.isprintable()


def test_only_yes_is_boolean() -> None:
    assert [entry.name for entry in KNOBS if entry.boolean] == ["yes"]


def test_accepted_profiles_are_named() -> None:
    accepts = knob("profile").accepts
    for backend in BACKENDS:
        for name in profile_names(backend):
            assert name in accepts


def test_knob_by_name() -> None:
    assert knob("stage_dir").env == "XB_STAGE"
    with pytest.raises(KeyError):
        knob("stage")


class TestGroups:
    def test_a_task_offers_what_it_uses(self) -> None:
        names = [entry.name for entry in knobs_for(Group.HOST, Group.NVIDIA)]
        assert names == [
            "mode",
            "host",
            "platform",
            "image",
            "workload_image",
            "stage_dir",
            "engine",
            "ssh_config",
            "host_keys",
            "yes",
            "mem",
            "gpu",
            "gpus",
            "sm",
            "profile",
            "max_glibc",
        ]

    def test_no_group_gives_what_serves_everything(self) -> None:
        assert [entry.name for entry in knobs_for()] == ["yes"]

    def test_every_flag_is_offered_by_some_group(self) -> None:
        assert knobs_for(*Group) == tuple(entry for entry in KNOBS if entry.flag)

    def test_vendors_keep_apart(self) -> None:
        ascend = {entry.name for entry in knobs_for(Group.ASCEND)}
        nvidia = {entry.name for entry in knobs_for(Group.NVIDIA)}
        assert {"npu", "chip", "vnpu", "aicore"} == ascend - nvidia
        assert {"gpu", "gpus", "sm"} == nvidia - ascend


class TestProjectFile:
    def test_lists_every_knob_but_the_host(self) -> None:
        entries = read_knob_file(PROJECT_FILE, "config/invoke.yaml", required=True)
        assert set(entries) == {entry.name for entry in KNOBS} - {"host"}

    def test_values_are_the_defaults(self) -> None:
        entries = read_knob_file(PROJECT_FILE, "config/invoke.yaml", required=True)
        for name, entry in entries.items():
            assert entry.text == knob(name).default, name

    def test_makes_the_settings_that_no_file_makes(self) -> None:
        with_file = resolve({}, {}, user_file=None, explicit_user_file=False, project_file=PROJECT_FILE)
        without = resolve({}, {}, user_file=None, explicit_user_file=False, project_file=None)
        assert [row.value for row in describe(with_file)] == [row.value for row in describe(without)]
        assert with_file.origin("aicore").startswith("config/invoke.yaml line ")
        assert without.origin("aicore") == "default"

    def test_every_knob_has_a_comment_with_its_variable_and_flag(self) -> None:
        text = PROJECT_FILE.read_text("utf-8")
        comments = " ".join(line for line in text.splitlines() if line.startswith("#"))
        for entry in KNOBS:
            assert entry.env in comments
            assert entry.flag in comments


def test_the_table_costs_no_import() -> None:
    program = (
        "import sys, invoke, __future__; before = set(sys.modules); import xbtasks.knobs.table; "
        "print(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"xbtasks", "xbtasks.knobs", "xbtasks.knobs.table"}
