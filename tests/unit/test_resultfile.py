"""Result documents read back: all of one, nothing but one, and no verdict that its rows don't bear out."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.elfkit import DCMI, vgpu, vruntime
from tests.unit.result_samples import EMPTY, HOSTILE, RESULT, RESULTS, hostile
from tests.workplace import PROJECT
from xbtasks.elf.summary import summarize
from xbtasks.errors import ExitCode, UsageError
from xbtasks.result import Result, merge
from xbtasks.resultfile import from_json, read_result

if TYPE_CHECKING:
    from pathlib import Path

VALIDATOR = Draft202012Validator(json.loads((PROJECT / "xbtasks/schema/result-1.json").read_text()))


def document(result: Result = RESULT) -> Any:
    """Return the document as a reader gets it."""
    return json.loads(json.dumps(result.to_json()))


def test_what_was_written_is_read_back_whole() -> None:
    for result in (RESULT, EMPTY):
        assert from_json(document(result)) == result
        VALIDATOR.validate(document(result))


@settings(deadline=None)
@given(RESULTS)
def test_any_result_is_read_back_whole(result: Result) -> None:
    VALIDATOR.validate(document(result))
    read = from_json(document(result))
    assert document(read) == document(result)
    assert (read.verdict, read.exit_code, read.reason) == (result.verdict, result.exit_code, result.reason)


@pytest.mark.parametrize("text", HOSTILE)
def test_text_is_read_back_as_it_was(text: str) -> None:
    assert document(from_json(document(hostile(text)))) == document(hostile(text))


def test_a_merged_result_keeps_its_hosts() -> None:
    merged = merge(
        [replace(RESULT, host="a"), replace(RESULT, host="b")], run="m", command="matrix", evidence=""
    )
    read = from_json(document(merged))
    assert [case.host for case in read.cases] == ["a"] * 5 + ["b"] * 5
    assert document(read) == document(merged)


def test_more_keys_and_documents_from_before_the_newer_ones_are_read() -> None:
    more = document()
    for holder in (more, more["cases"][0], more["cases"][0]["checks"][0], more["artifacts"][0]["elf"]):
        holder["more"] = {"x": 1}
    assert from_json(more) == RESULT
    before = document(replace(RESULT, errors=()))
    del before["errors"]
    for artifact in before["artifacts"]:
        del artifact["elf"], artifact["pin"]
    for found in (*before["cases"], *before["builds"], *before["artifacts"]):
        del found["host"]
    read = from_json(before)
    assert (read.cases, read.artifacts[0].elf) == (RESULT.cases, None)


def test_what_a_document_from_before_the_errors_were_kept_ended_with_is_not_lost() -> None:
    before = document(replace(EMPTY, errors=((ExitCode.CANNOT_JUDGE, "the engine is gone"),)))
    del before["errors"]
    assert (from_json(before).exit_code, from_json(before).reason) == (4, "the engine is gone")


def paths(value: object, *so_far: str | int) -> list[tuple[str | int, ...]]:
    """Return the path to each value of a document."""
    found: list[tuple[str | int, ...]] = [so_far] if so_far else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        found += paths(each, *so_far, key)
    return found


PATHS = paths(document())


def holder_of(whole: Any, path: tuple[str | int, ...]) -> Any:
    """Return the object or list that holds the value at ``path``."""
    for step in path[:-1]:
        whole = whole[step]
    return whole


@pytest.mark.parametrize("path", [path for path in PATHS if isinstance(path[-1], str)])
def test_no_key_is_optional_but_the_newer_ones_and_what_is_computed(path: tuple[str | int, ...]) -> None:
    whole = document()
    del holder_of(whole, path)[path[-1]]
    newer = path[-1] in ("host", "pin", "elf") and len(path) > 1
    if newer or path in (("reason",), ("errors",)):
        assert from_json(whole)
        return
    with pytest.raises(UsageError, match=f"has no {re.escape(str(path[-1]))}|means"):
        from_json(whole)


@settings(deadline=None)
@given(
    st.sampled_from(PATHS),
    st.one_of(st.none(), st.integers(-9, 9), st.floats(), st.lists(st.none(), max_size=1)),
)
def test_a_value_of_another_type_is_refused_or_changes_nothing(
    path: tuple[str | int, ...], value: object
) -> None:
    whole = document()
    holder_of(whole, path)[path[-1]] = value
    try:
        result = from_json(whole)
    except UsageError:
        return
    assert VALIDATOR.is_valid(document(result))
    assert (result.verdict, result.exit_code) == (RESULT.verdict, RESULT.exit_code)


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=3) | st.floats(), lambda x: st.lists(x, max_size=2)
    )
)
def test_what_is_no_document_at_all_is_refused(value: object) -> None:
    with pytest.raises(UsageError, match="is not an object"):
        from_json(value)


SKIPPED = {"id": "nvidia.case1.mode", "status": "SKIP", "detail": "", "expected": "", "observed": ""}


def changed(**values: object) -> Any:
    """Return the document of a passing run with other values in it."""
    rows = tuple(row for row in RESULT.cases[0].checks if row.status != "FAIL")
    passing = replace(RESULT.cases[2], checks=rows)
    whole = document(replace(RESULT, cases=(passing,), builds=(), errors=()))
    assert whole["verdict"] == "PASS"
    assert from_json(whole)
    for path, value in values.items():
        steps: list[Any] = [int(step) if step.isdigit() else step for step in path.split("__")]
        holder_of(whole, tuple(steps))[steps[-1]] = value
    return whole


FAILING_ROW = {"id": "nvidia.case1.x", "status": "FAIL", "detail": "", "expected": "", "observed": ""}


@pytest.mark.parametrize(
    ("whole", "said"),
    [
        (changed(exit_code=1), "exit code 1, and what it holds means 0"),
        (changed(verdict="FAIL"), "says FAIL, and what it holds means PASS"),
        (changed(cases=[]), "exit code 0, and what it holds means 3"),
        (changed(cases__0__checks=[]), "says PASS and has no row that PASSes"),
        (changed(cases__0__checks=[SKIPPED]), "says PASS and has no row that PASSes"),
        (changed(cases__0__checks=[FAILING_ROW]), "says PASS and has a row that FAILs"),
        (changed(cases__0__exit_code=1), "says PASS and exit code 1"),
        (changed(cases__0__verdict="SKIP"), "says SKIP and exit code 0"),
        (changed(errors=[{"exit_code": 0, "message": "x"}], cases=[]), "is no error: exit code 0"),
        (changed(builds=[{"stage": "x", "outcome": "failed", "reason": "", "seconds": 1}]), "means 1"),
        (
            changed(builds=[{"stage": "x", "outcome": "done", "reason": "", "seconds": 1}]),
            "outcome of builds[0]",
        ),
        (changed(cases__0__seconds=float("nan")), "seconds of cases[0] of the document is 'nan'"),
        (changed(cases__0__seconds=float("inf")), "number of seconds"),
        (changed(schema=2), "it is of form 2, this version reads 1"),
        (changed(exit_code=True), "exit_code of the document is 'True'"),
        (changed(exit_code=0.0), "exit_code of the document is '0.0'"),
        (changed(cases__0__verdict="PASSED"), "not one of PASS, FAIL, SKIP, ERROR"),
    ],
)
def test_a_document_that_contradicts_itself_or_the_schema_is_refused(whole: Any, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        from_json(whole)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b'{"schema": 1', "is not JSON"),
        (b"[" * 200_000, "is not JSON"),
        (b'{"schema": ' + b"9" * 5000 + b"}", "is not JSON"),
        (b"[]", "is no result document: the document is not an object"),
        (b'{"schema": 1, "runs": []}', "is no result document: the document has no host"),
    ],
)
def test_a_file_that_is_none_is_refused_in_a_line(data: bytes, said: str, tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    target.write_bytes(data)
    with pytest.raises(UsageError, match=said) as refused:
        read_result(target)
    assert "\n" not in str(refused.value)
    assert str(target) in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(UsageError, match="can't be read"):
            read_result(path)


def test_an_artifact_s_facts_are_those_of_its_bytes() -> None:
    before, after = summarize(vgpu()), summarize(vgpu(without=("cuMemAlloc_v2",)))
    assert before is not None
    assert after is not None
    assert before.needed[:2] == ("libcuda.so.1", "libnvidia-ml.so.1")
    assert (before.soname, before.type, before.rpath) == ("libvgpu.so", "shared library", None)
    assert set(before.exported) - set(after.exported) == {"cuMemAlloc_v2"}
    assert "getenv@GLIBC_2.2.5" in before.imports
    assert "getenv@GLIBC_2.2.5" not in before.weak_imports
    weak = summarize(vruntime())
    assert weak is not None
    assert set(DCMI) <= set(weak.weak_imports)
    assert not set(DCMI) & set(weak.imports)
    assert summarize(b"\x7fELF") is None
    assert summarize(b"#!/bin/sh\n") is None
