from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from xbtasks.backends.nvidia.smi import QUERY, Gpu, parse_gpus
from xbtasks.hostprobe import Trouble, Unusable

SAMPLES = Path(__file__).parents[1] / "samples" / "nvidia-smi"


def parsed(name: str, status: int = 0, stderr: str = "") -> tuple[Gpu, ...] | Unusable:
    return parse_gpus((SAMPLES / name).read_text(), status, stderr)


def gpus(name: str, status: int = 0) -> tuple[Gpu, ...]:
    found = parsed(name, status)
    assert not isinstance(found, Unusable), found
    return found


def test_the_query_names_the_columns_that_are_read() -> None:
    assert QUERY == (
        "--query-gpu=index,uuid,name,memory.total,mig.mode.current,driver_version",
        "--format=csv,noheader,nounits",
    )


def test_two_gpus() -> None:
    uuids = ("GPU-5a1c0d3e-1111-4c2b-9d3f-0123456789ab", "GPU-6b2d1e4f-2222-4d3c-8e4a-123456789abc")
    assert gpus("two-h200.csv") == tuple(
        Gpu(index, uuid, "NVIDIA H200", 143771, mig=False, driver="570.195.03")
        for index, uuid in enumerate(uuids)
    )
    assert all(gpu.sliceable and not gpu.unified for gpu in gpus("two-h200.csv"))


def test_unified_memory_is_unknown_not_zero() -> None:
    (gpu,) = gpus("unified-gb10.csv")
    assert gpu.memory_mib is None
    assert gpu.mig is None
    assert gpu.unified
    assert not gpu.sliceable


def test_memory_that_may_not_be_read_is_not_unified_memory() -> None:
    found = parse_gpus("0, GPU-aa, X, [Insufficient Permissions], Disabled, 1.2\n", 0)
    assert isinstance(found, tuple)
    assert found[0].memory_mib is None
    assert not found[0].unified
    assert found[0].memory_text == "[Insufficient Permissions]"


def test_mig_mode_is_named_for_its_gpu_alone() -> None:
    first, second = gpus("one-in-mig-mode.csv")
    assert (first.mig, first.sliceable) == (True, False)
    assert (second.mig, second.sliceable) == (False, True)


def test_name_with_a_comma() -> None:
    assert gpus("quoted-name.csv")[0].name == "NVIDIA RTX, Special Edition"


def test_corrupt_inforom_is_a_warning_behind_the_rows() -> None:
    (gpu,) = gpus("inforom-corrupt.csv", 14)
    assert (gpu.name, gpu.memory_mib, gpu.mig) == ("Tesla T4", 15360, None)
    assert isinstance(parsed("inforom-corrupt.csv", 0), Unusable)


@pytest.mark.parametrize(
    ("name", "status", "trouble"),
    [
        ("mismatch.txt", 18, Trouble.MISMATCH),
        ("no-devices.txt", 6, Trouble.NO_DEVICE),
        ("no-devices.txt", 0, Trouble.NO_DEVICE),
        ("no-driver.txt", 9, Trouble.NO_DRIVER),
        ("unknown-error.txt", 255, Trouble.LOST),
        ("gpu-lost.txt", 15, Trouble.LOST),
        ("old-driver.txt", 2, Trouble.UNSUPPORTED),
        ("insufficient-permissions.txt", 4, Trouble.PERMISSION),
        ("insufficient-permissions.txt", 0, Trouble.PERMISSION),
        ("several-lines.txt", 0, Trouble.UNREADABLE),
        ("other-columns.txt", 0, Trouble.UNREADABLE),
        ("vgpu-profile.txt", 0, Trouble.UNREADABLE),
        ("two-h200.csv", 77, Trouble.FAILED),
    ],
)
def test_reason_why_not(name: str, status: int, trouble: Trouble) -> None:
    found = parsed(name, status)
    assert isinstance(found, Unusable)
    assert found.trouble is trouble
    assert found.text
    assert found.text.isprintable()


def test_the_reason_is_the_tools_own() -> None:
    found = parsed("mismatch.txt", 18)
    assert isinstance(found, Unusable)
    assert found.text == (
        "Failed to initialize NVML: Driver/library version mismatch NVML library version: 570.195"
    )


def test_a_reason_on_stderr_and_none_at_all() -> None:
    loader = "nvidia-smi: error while loading shared libraries: libnvidia-ml.so.1: cannot open\n"
    assert parse_gpus("", 127, loader) == Unusable(Trouble.NO_LIBRARY, loader.strip())
    assert parse_gpus("", 0) == Unusable(Trouble.NO_DEVICE, "it said nothing and ended with 0")


@pytest.mark.parametrize(
    "row",
    [
        "0, GPU-aa, X, 10, Disabled, 1.2\n0, GPU-bb, X, 10, Disabled, 1.2",  # an index twice
        "0, GPU-aa, X, 10, Disabled, 1.2\n1, GPU-aa, X, 10, Disabled, 1.2",  # a UUID twice
        "0, GPU-aa, X, 10, Disabled, 1.2\nWarning: 1 thing",
        "zero, GPU-aa, X, 10, Disabled, 1.2",
        "-1, GPU-aa, X, 10, Disabled, 1.2",
        "0, MIG-aa, X, 10, Disabled, 1.2",
        "0, GPU-aa, , 10, Disabled, 1.2",
        "0, GPU-aa, X, 10, Disabled, ",
        "0, GPU-aa, X, 10, Disabled, 1.2, 5",
        '0, GPU-aa, "X, 10, Disabled, 1.2',
        '0, GPU-aa, "X" Y, 10, Disabled, 1.2',
        "٣, GPU-aa, X, 10, Disabled, 1.2",
    ],
)
def test_rows_that_are_not_whole_are_not_believed(row: str) -> None:
    found = parse_gpus(row, 0)
    assert isinstance(found, Unusable)
    assert found.trouble is Trouble.UNREADABLE


@pytest.mark.parametrize("text", ["80 GiB", "4096.5", "", "1e5", "0x10", "-5", "9" * 13])
def test_memory_is_a_whole_number_or_unknown(text: str) -> None:
    found = parse_gpus(f"0, GPU-aa, X, {text}, Disabled, 1.2", 0)
    assert isinstance(found, tuple)
    assert found[0].memory_mib is None
    assert found[0].memory_text == text


def test_control_characters_never_reach_a_row() -> None:
    found = parse_gpus("0, GPU-aa, \x1b[31mX, [N/\x07A], Disabled, 1.2\x01", 0)
    assert isinstance(found, tuple)
    assert all(text.isprintable() for text in (found[0].name, found[0].driver, found[0].memory_text))


@given(st.text(), st.integers(0, 255), st.text())
@example("\x00", 0, "")
@example('"', 14, "")
def test_any_text_gives_a_typed_result(stdout: str, status: int, stderr: str) -> None:
    found = parse_gpus(stdout, status, stderr)
    if isinstance(found, Unusable):
        assert found.text.isprintable()
    else:
        assert found
        assert status in (0, 14)


FIELD = st.text(st.characters(exclude_characters='",\r\n', exclude_categories=("C", "Z")), min_size=1)


@given(
    st.lists(
        st.tuples(
            FIELD, st.integers(0, 999_999) | st.none(), st.sampled_from(["Enabled", "Disabled", "[N/A]"])
        ),
        min_size=1,
        max_size=16,
    )
)
def test_what_is_printed_is_what_is_read(cards: list[tuple[str, int | None, str]]) -> None:
    text = "".join(
        f"{index}, GPU-{index}, {name}, {'[N/A]' if memory is None else memory}, {mig}, 1.2\n"
        for index, (name, memory, mig) in enumerate(cards)
    )
    found = parse_gpus(text, 0)
    assert isinstance(found, tuple)
    assert [(gpu.index, gpu.name, gpu.memory_mib) for gpu in found] == [
        (index, name, memory) for index, (name, memory, _) in enumerate(cards)
    ]
