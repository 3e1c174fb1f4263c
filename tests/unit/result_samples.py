"""Results to render: an ordinary one, and hostile ones with each kind of text that a form could mistake."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hypothesis import strategies as st

from xbtasks.checks import CaseReport, Check, Status, Verdict, exit_code_of
from xbtasks.elf.summary import ElfSummary
from xbtasks.errors import ExitCode
from xbtasks.result import ArtifactRecord, BuildRecord, Result

STAGE: Final = "xbuild-nvidia-cuda-13"
OTHER: Final = "xbuild-ascend-cann-9-910c"
HOSTILE: Final = (
    "a|b \\|c `code` ``x`` **bold** _it_ ~~s~~",
    "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "</code></td></table></details><h1>PASS</h1>",
    "]]> &amp; &#124; <!-- --> --> <![CDATA[x",
    "@alice #12 https://evil.example/x www.evil.example me@evil.example :tada:",
    "[click](javascript:alert(3)) ![i](http://evil.example/i.png)",
    "line one\nline two\r\n\n# heading\n- item\n> quote",
    'quote " apos \' = onclick="alert(4)"',
    "nul \0 esc \x1b[31m bell \x07 del \x7f",
    "none \ufffe \uffff \ud800 \udcff of these",
    "\u202egnirts\u202c \u200b zero width, emoji 🚀, 漢字",
    "{{7*7}} ${x} %s {0} $(id)",
)

ROWS: Final = (
    Check("nvidia.case1.present", Status.PASS, "/out/libvgpu.so, 5 bytes"),
    Check("nvidia.case1.mode", Status.FAIL, "libvgpu.so: the mode is the linker's", "0644", "0600"),
    Check("nvidia.case1.profile", Status.WARN, "no profile knows the pin"),
    Check("nvidia.case1.glibc", Status.INFO, "needs GLIBC_2.34"),
)


def case(
    verdict: Verdict, *, number: int = 1, stage: str = STAGE, reason: str = "", rows: tuple[Check, ...] = ROWS
) -> CaseReport:
    """Return a case's report."""
    backend = stage.split("-")[1]
    if verdict is Verdict.PASS:
        rows = tuple(row for row in rows if row.status is not Status.FAIL)
    return CaseReport(
        f"{backend}.case{number}",
        "Build artifacts + linking",
        stage,
        verdict,
        reason,
        1.25,
        exit_code_of(verdict),
        rows,
    )


ELF: Final = ElfSummary(
    arch="x86-64, 64-bit little-endian",
    type="shared library",
    soname="libvgpu.so",
    needed=("libcuda.so.1", "libnvidia-ml.so.1", "libc.so.6"),
    rpath=None,
    runpath=None,
    interp=None,
    glibc="2.34",
    glibc_tags=(),
    textrel=False,
    bind_now=False,
    exported=("cuInit", "cuMemAlloc_v2", "dlsym"),
    imports=("dlopen@GLIBC_2.34", "printf@GLIBC_2.2.5"),
    weak_imports=("__cxa_finalize@GLIBC_2.2.5",),
)
ARTIFACT: Final = ArtifactRecord(
    STAGE, "/out/libvgpu.so", "0" * 64, 5, "sha256:" + "1" * 64, pin="5" * 40, elf=ELF
)
RESULT: Final = Result(
    "20260102-030405-abcdef",
    "verify",
    "local",
    "/evidence/20260102-030405-abcdef",
    engine="docker 26.1.5",
    simulated=True,
    preflight=(
        Check("preflight.docker", Status.PASS, "docker 26.1.5"),
        Check("preflight.npu", Status.WARN, "none"),
    ),
    builds=(
        BuildRecord(STAGE, "built", "there is no image yet", 12.5),
        BuildRecord(OTHER, "failed", "exit code 3", 2.0),
    ),
    cases=(
        case(Verdict.FAIL, reason="nvidia.case1.mode"),
        case(Verdict.SKIP, number=2, reason="needs 1 GPU, the host has 0", rows=ROWS[2:3]),
        case(Verdict.PASS, number=3),
        case(Verdict.SKIP, stage=OTHER, reason="the build failed: exit code 3", rows=()),
        case(Verdict.ERROR, number=2, stage=OTHER, reason="the engine went away", rows=()),
    ),
    artifacts=(ARTIFACT,),
    errors=((ExitCode.CANNOT_JUDGE, "host b: unreachable"),),
)
EMPTY: Final = Result("20260102-030405-abcdef", "verify", "local", "/evidence")


def hostile(text: str) -> Result:
    """Return a result that says ``text`` wherever a run can say something."""
    row = Check(text, Status.FAIL, text, text, text)
    report = CaseReport(text, text, text, Verdict.FAIL, text, 1.0, ExitCode.FAILED, (row,))
    names = (text,)
    elf = replace(
        ELF,
        arch=text,
        soname=text,
        needed=names,
        runpath=text,
        exported=names,
        imports=names,
        weak_imports=names,
    )
    return Result(
        run=text,
        command="verify",
        host=text,
        evidence=text,
        engine=text,
        preflight=(row, Check(text, Status.PASS, text)),
        builds=(BuildRecord(text, "failed", text, 1.0, text), BuildRecord(text, "built", text, 1.0, "other")),
        cases=(
            replace(report, host=text),
            replace(report, host="other", verdict=Verdict.ERROR, exit_code=ExitCode.CANNOT_JUDGE),
            replace(report, host="other", verdict=Verdict.SKIP, exit_code=ExitCode.SKIPPED),
        ),
        artifacts=(replace(ARTIFACT, stage=text, path=text, host=text, pin=text, elf=elf),),
        errors=((ExitCode.CANNOT_JUDGE, text),),
    )


def _reports() -> st.SearchStrategy[CaseReport]:
    return st.builds(
        case,
        st.sampled_from(Verdict),
        number=st.integers(1, 3),
        stage=st.sampled_from((STAGE, OTHER)),
        reason=st.text(max_size=30),
    )


RESULTS: Final = st.builds(
    Result,
    run=st.just("20260102-030405-abcdef"),
    command=st.sampled_from(("verify", "build", "preflight", "matrix")),
    host=st.sampled_from(("local", "a, b")),
    evidence=st.just(""),
    preflight=st.lists(
        st.builds(Check, st.just("preflight.x"), st.sampled_from(Status), st.text(max_size=9)), max_size=2
    ).map(tuple),
    builds=st.lists(
        st.builds(
            BuildRecord,
            st.sampled_from((STAGE, OTHER)),
            st.sampled_from(("built", "up to date", "failed")),
            st.text(max_size=9),
            st.floats(0, 9),
            st.sampled_from(("", "a", "b")),
        ),
        max_size=2,
    ).map(tuple),
    cases=st.lists(_reports(), max_size=4).map(tuple),
    errors=st.lists(
        st.tuples(
            st.sampled_from([code for code in ExitCode if code != 0]),
            st.text(min_size=1, max_size=20),
        ),
        max_size=2,
    ).map(tuple),
)
"""Results of every kind of verdict."""
