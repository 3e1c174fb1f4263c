from __future__ import annotations

import json
import re
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.elfkit import DCMI
from xbtasks.backends import BACKENDS
from xbtasks.backends.profiles import DcmiLinkage, FileType, base_profile, profile_for, profile_names
from xbtasks.errors import ExitCode, UsageError

MEASURED = {
    "4d7e4b10ebc2416d761de7d9c1ab0282ae35dae9": "acl-linked",
    "6e9f291bde6ae5d085f4b84a22c556ebc0c42355": "acl-linked",
    "7fbc40514de8abdc5df4f45483b037fbf2cdf4bc": "acl-linked",
    "37f5ece1d37f13aa3c5acc83b1ecaf02579874da": "acl-dlopened",
    "9f8c779685edeb0939a681922bb56f09128f3445": "acl-dlopened",
    "bac3d461c9312acfaa388bed89e9ed2a61971d1a": "acl-dlopened",
    "5c2eac5751f3467fe9e17cc8934e8419b64f8fcc": "pre-weak",
    "764513b30d44a1d95ddc5252ab102e5014ff6e27": "pre-weak",
    "9e1cf5de943910debf9fe7e2afe1a513f62c2ad9": "pre-weak",
    "f8e6322d825899135ad9d594307058ff9484aaa0": "pre-weak",
    "61d6a02a23464cdaeb39adb07b376f6d6d1a7dca": "pre-weak",
}
"""ubs-virt commits that were built, and what their artifacts looked like."""


def name_of(pin: str, backend: str = "ascend") -> str | None:
    profile = profile_for(backend, pin)
    return profile.name if profile else None


def test_the_names() -> None:
    assert profile_names("ascend") == ("acl-linked", "acl-dlopened", "pre-weak")
    assert profile_names("nvidia") == ("needed", "as-needed")


@pytest.mark.parametrize(("pin", "name"), MEASURED.items())
@pytest.mark.parametrize("digits", [7, 8, 12, 13, 39, 40])
def test_a_pin_selects_its_profile_short_or_full(pin: str, name: str, digits: int) -> None:
    assert name_of(pin[:digits]) == name
    assert name_of(pin[:digits].upper()) == name


@pytest.mark.parametrize("pin", MEASURED)
def test_six_digits_select_nothing(pin: str) -> None:
    assert name_of(pin[:6]) is None


@pytest.mark.parametrize(
    "pin",
    [
        "",
        "main",
        "v1.2.3",
        "0123456",
        "9f8c779685ee",
        "9f8c779685edeb0939a681922bb56f09128f34450",
        "9f8c779-dirty",
        " 9f8c779",
        "9f8c779\n",
        "refs/heads/9f8c779",
        "deadbeefdeadbeefdeadbeefdeadbeefdeadbeef",
        "9f8c77\u0669",
    ],
)
def test_what_no_profile_knows_is_not_guessed(pin: str) -> None:
    assert name_of(pin) is None
    assert name_of(pin, "nvidia") == "needed"


@given(st.text(max_size=50))
def test_any_text_may_be_a_pin(pin: str) -> None:
    assert name_of(pin) in (None, *profile_names("ascend"))


def test_a_name_overrides_the_pin() -> None:
    chosen = profile_for("ascend", "9f8c7796", "pre-weak")
    assert chosen is not None
    assert chosen.name == "pre-weak"
    chosen = profile_for("nvidia", "", "as-needed")
    assert chosen is not None
    assert chosen.expectation("libvgpu.so").waived == ("libcuda.so.1", "libnvidia-ml.so.1")


@pytest.mark.parametrize(
    ("backend", "name"), [("ascend", "needed"), ("nvidia", "acl-linked"), ("nvidia", "x")]
)
def test_a_name_of_another_backend_is_refused(backend: str, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        profile_for(backend, "", name)
    assert name in caught.value.message
    assert caught.value.hint.endswith(", ".join(profile_names(backend)))
    assert caught.value.exit_code is ExitCode.USAGE


def test_no_pin_is_in_two_profiles() -> None:
    pins = [pin for name in profile_names("ascend") for pin in _pins(name)]
    assert len(pins) == len({pin[:7] for pin in pins})
    assert all(re.fullmatch(r"[0-9a-f]{12}", pin) for pin in pins)


def _pins(name: str) -> tuple[str, ...]:
    profile = profile_for("ascend", "", name)
    assert profile is not None
    return profile.pins


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_artifact_has_an_expectation_in_every_profile(backend: str) -> None:
    artifacts = [artifact.name for artifact in BACKENDS[backend].artifacts]
    profiles = [base_profile(backend), *(profile_for(backend, "", name) for name in profile_names(backend))]
    for profile in profiles:
        assert profile is not None
        assert [expectation.artifact for expectation in profile.artifacts] == artifacts
        for expectation in profile.artifacts:
            assert "libc.so.6" in expectation.needed
            assert not {*expectation.needed, *expectation.waived} & set(expectation.forbidden)
            assert all(pattern.count("*") == 1 for _library, pattern in expectation.providers)
    with pytest.raises(KeyError):
        base_profile(backend).expectation("libother.so")


def test_the_contract_of_ascend() -> None:
    for name, needed, forbidden, linkage in (
        ("acl-linked", {"libc_sec.so", "libascendcl.so"}, (), DcmiLinkage.WEAK),
        ("acl-dlopened", {"libc_sec.so"}, ("libascendcl.so",), DcmiLinkage.WEAK),
        ("pre-weak", {"libc_sec.so", "libdcmi.so"}, ("libascendcl.so",), DcmiLinkage.STRONG),
    ):
        profile = profile_for("ascend", "", name)
        assert profile is not None
        library, tool = profile.expectation("libvruntime.so"), profile.expectation("enpu-monitor")
        assert (library.type, tool.type) == (FileType.SHARED, FileType.PIE)
        for expectation in (library, tool):
            assert set(expectation.needed) == {"libc.so.6"} | needed
            assert expectation.forbidden == forbidden
            assert expectation.dcmi_linkage is linkage
            assert expectation.weak == (DCMI if linkage is DcmiLinkage.WEAK else ())
        memory = ("rtMalloc", "rtMallocCached", "rtDvppMalloc", "rtDvppMallocWithFlag", "rtMemAlloc")
        memory += ("rtMemAllocManaged", "rtMallocPhysical", "rtMemGetInfoEx")
        device = ("rtSetDevice", "rtSetDeviceEx", "rtSetDeviceWithFlags", "rtSetDeviceWithoutTsd")
        assert set(memory + device) < set(library.hooks)
        assert tool.hooks == ()


def test_the_contract_of_nvidia() -> None:
    profile = profile_for("nvidia", "52f33fc7")
    assert profile is not None
    library = profile.expectation("libvgpu.so")
    assert set(library.needed) == {"libc.so.6", "libcuda.so.1", "libnvidia-ml.so.1"}
    assert library.soname == "libvgpu.so"
    assert {"dlsym", "cuMemAlloc_v2", "cuGetProcAddress", "nvmlDeviceGetMemoryInfo_v2"} < set(library.hooks)
    assert library.dcmi_linkage is DcmiLinkage.NONE


def test_what_holds_for_every_pin_says_nothing_of_what_depends_on_it() -> None:
    for expectation in base_profile("ascend").artifacts:
        assert set(expectation.needed) == {"libc.so.6", "libc_sec.so"}
        assert expectation.forbidden == ()
        assert expectation.weak == ()
        assert expectation.dcmi_linkage is DcmiLinkage.UNKNOWN


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_data_holds_only_keys_that_are_read(backend: str) -> None:
    data = json.loads(files("xbtasks.backends").joinpath(backend, "profiles.json").read_text("utf-8"))
    assert set(data) == {"default", "dcmi", "allowed", "providers", "artifacts", "profiles", "hints"}
    for artifact in data["artifacts"].values():
        assert set(artifact) <= {"kind", "soname", "needed", "hooks", "counts"}
    for profile in data["profiles"].values():
        assert set(profile) <= {"summary", "needed", "forbidden", "waived", "weak", "dcmi", "pins"}
