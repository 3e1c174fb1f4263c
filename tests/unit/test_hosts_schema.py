"""The schema of a hosts file, for editors and CI: it says what the parser says."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.unit.test_hostsfile import GOOD, WRONG
from tests.workplace import PROJECT
from xbtasks.backends import BACKENDS
from xbtasks.errors import UsageError
from xbtasks.knobs.table import KNOBS
from xbtasks.matrix.hostsfile import NOT_A_HOSTS, read_hosts

SCHEMA: Final = json.loads((PROJECT / "xbtasks/schema/hosts-1.json").read_text())
VALIDATOR: Final = Draft202012Validator(SCHEMA)
UNTOLD: Final = ("is set twice", "is named twice", "broken YAML", "is no key of a host; name")
"""What the parser refuses and a schema can't, or needn't, as YAML itself says it."""


def parsed(text: str) -> str:
    """Return what the parser has against a file, or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "hosts.yaml"
        file.write_text(text)
        try:
            read_hosts(file)
        except UsageError as error:
            return str(error)
    return ""


def fits(document: object) -> bool:
    return bool(VALIDATOR.is_valid(document))


def test_it_is_a_schema_of_this_versions_names() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    knobs = [knob.name for knob in KNOBS if knob.name not in NOT_A_HOSTS]
    assert set(SCHEMA["$defs"]["knob"]["enum"]) == {*knobs, *(name.replace("_", "-") for name in knobs)}
    assert SCHEMA["$defs"]["backend"]["enum"] == list(BACKENDS)


def test_files_that_are_right_fit() -> None:
    guide = (PROJECT / "docs/guides/fleet.md").read_text()
    (written,) = [part.partition("```")[0] for part in guide.split("```yaml\n")[1:]]
    for text in (GOOD, written):
        assert parsed(text) == ""
        VALIDATOR.validate(yaml.safe_load(text))


@pytest.mark.parametrize("text", WRONG)
def test_what_the_parser_refuses_does_not_fit(text: str) -> None:
    said = parsed(text)
    assert said
    if not any(word in said for word in UNTOLD):
        assert not fits(yaml.safe_load(text)), said


RIGHT: Final = (
    *("local", "gpu-1", "me@10.0.0.7:2222", "a_b.c", "0", "7.5", "a@b@c", "DOM\\me@h", "[fe80::1]:22"),
    *("[::1]", "me@[fe80::1%eth0]", "h:1", "h:65535", "x" * 253, f"{'u' * 64}@h"),
)
NONE: Final = (
    *("", "-h", "-oProxyCommand=x", "ssh://h", "h:", "h:0", "h:022", "h:x", "h:65536", "@h", "me@"),
    *("fe80::1", "[fe80::1]x", "a b", "a;b", "$(id)", "h:123456", "x" * 254, f"{'u' * 65}@h", "a\\@h"),
    *("-u@h", "ü", "[h]", "[]", "a@@h"),
)


@pytest.mark.parametrize("destination", [*RIGHT, *NONE])
def test_a_destination_fits_where_it_is_one(destination: str) -> None:
    document = {"hosts": [{"name": "a", "ssh": destination}]}
    assert fits(document) is (parsed(json.dumps(document)) == "") is (destination in RIGHT)


PLAIN: Final = st.one_of(st.integers(0, 99), st.booleans(), st.none(), st.text("a0-_./@ ,", max_size=5))
ODD: Final = st.one_of(PLAIN, st.lists(PLAIN, max_size=2), st.just({"a": 1}))
HOST: Final = st.fixed_dictionaries(
    {"ssh": st.one_of(st.just("local"), ODD)},
    optional={
        "name": st.one_of(st.just("a"), ODD),
        **dict.fromkeys(("gpu", "gpus", "npu", "chip", "vnpu", "other"), ODD),
        "backends": st.one_of(ODD, st.sampled_from(["nvidia", ["ascend", "nvidia"], ["nvida"], []])),
        "knobs": st.one_of(
            ODD,
            st.dictionaries(
                st.sampled_from(["stage-dir", "mem", "sm", "host", "yes", "gpus", "x"]), ODD, max_size=2
            ),
        ),
    },
)


@given(st.one_of(ODD, st.lists(HOST, max_size=1)))
def test_any_structure_fits_where_it_is_a_hosts_file(hosts: Any) -> None:
    document = {"hosts": hosts}
    said = parsed(json.dumps(document))
    if "is set twice" not in said:
        assert fits(document) is (said == ""), said
