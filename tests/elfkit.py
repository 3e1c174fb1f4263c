"""Real ELF files for tests, compiled by gcc.

They honour the contract of a stage's artifacts (NEEDED, dcmi, hooks, SONAME) with small sources
of our own; each keyword of a builder breaks, or allows, one thing. Equal requests are built once.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from xbtasks.backends.profiles import profile_for

__all__ = [
    "DCMI",
    "archive",
    "compile_c",
    "cross_compiler",
    "debug_only",
    "linkers",
    "monitor",
    "rt_hooks",
    "run",
    "same_version_libc",
    "versioned_libc",
    "vgpu",
    "vgpu_hooks",
    "vruntime",
]

DCMI = (
    "dcmi_get_card_id_device_id_from_phyid",
    "dcmi_get_device_resource_info",
    "dcmi_get_device_utilization_rate",
    "dcmi_init",
    "dcmiv2_get_device_list",
    "dcmiv2_get_device_proc_mem_info",
    "dcmiv2_get_device_utilization_rate",
    "dcmiv2_init",
)
_STUBS = {
    # file name: (SONAME, functions)
    "libcuda.so": ("libcuda.so.1", ("cuStub",)),
    "libnvidia-ml.so": ("libnvidia-ml.so.1", ("nvmlStub",)),
    "libcudabare.so": ("libcuda.so", ("cuStub",)),
    "libcudafake.so": ("libcuda.so.1.fake", ("cuStub",)),
    "libcudaregex.so": ("libcudaXso.1", ("cuStub",)),
    "libc_sec.so": ("libc_sec.so", ("memcpy_s",)),
    "libboundscheck.so": ("libboundscheck.so", ("memcpy_s",)),
    "libascendcl.so": ("libascendcl.so", ("aclrtGetSocName",)),
    "libdcmi.so": ("libdcmi.so", DCMI),
    "libextra.so": ("libextra.so.7", ("extra",)),
    "libpath.so": ("", ("path",)),
}


def run(*argv: str) -> None:
    """Run a tool of the toolchain; raises with its own words when it fails."""
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{argv}: {done.stderr}"


@cache
def _workshop() -> Path:
    """Return a folder of this process."""
    folder = Path(tempfile.mkdtemp(prefix="elfkit-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _stubs(compiler: str) -> Path:
    """Return a folder with the stub libraries that the artifacts are linked with."""
    folder = _workshop() / f"stubs-{compiler}"
    folder.mkdir()
    for name, (soname, functions) in _STUBS.items():
        source = folder / "stub.c"
        source.write_text("".join(f"int {function}(void) {{ return 0; }}\n" for function in functions))
        flags = [f"-Wl,-soname,{soname}"] if soname else []
        run(compiler, "-shared", "-fPIC", "-w", *flags, "-o", str(folder / name), str(source))
    return folder


@cache
def compile_c(
    source: str, *flags: str, compiler: str = "gcc", stubs: bool = True, scripts: str = ""
) -> bytes:
    """Return what ``compiler`` makes of ``source``; ``{here}`` in a flag is the folder of the stub libraries.

    ``scripts`` is the text of a linker version script.
    """
    folder = Path(tempfile.mkdtemp(dir=_workshop()))
    (folder / "source.c").write_text(source)
    words = [flag.format(here=_stubs(compiler)) for flag in flags] if stubs else list(flags)
    if scripts:
        (folder / "versions.map").write_text(scripts)
        words.append(f"-Wl,--version-script={folder / 'versions.map'}")
    if stubs:
        words = [f"-L{_stubs(compiler)}", *words]
    run(compiler, "-w", "-O1", "-o", str(folder / "out"), str(folder / "source.c"), *words)
    return (folder / "out").read_bytes()


@cache
def versioned_libc(*versions: str) -> str:
    """Return a flag that links a libc.so.6 of our own; its function ``f<n>`` has the n-th of ``versions``."""
    return _libc({version: (f"f{n}",) for n, version in enumerate(versions)})


@cache
def same_version_libc(count: int, version: str) -> str:
    """Return a flag that links a libc.so.6 of our own with ``count`` functions ``f<n>`` of one version."""
    return _libc({version: tuple(f"f{n}" for n in range(count))})


def _libc(versions: dict[str, tuple[str, ...]]) -> str:
    folder = Path(tempfile.mkdtemp(dir=_workshop()))
    known = {"GLIBC_2.2.5": ("getenv",)} | versions
    source = _functions(tuple(name for functions in known.values() for name in functions))
    scripts = "".join(f"{version} {{ global: {'; '.join(names)}; }};\n" for version, names in known.items())
    flags = ("-shared", "-fPIC", "-nostdlib", "-Wl,-soname,libc.so.6")
    (folder / "libversions.so").write_bytes(compile_c(source, *flags, scripts=scripts))
    return str(folder / "libversions.so")


@cache
def archive() -> bytes:
    """Return a static library."""
    folder = Path(tempfile.mkdtemp(dir=_workshop()))
    (folder / "f.o").write_bytes(compile_c("int f(void) { return 0; }", "-c", stubs=False))
    run("ar", "rc", str(folder / "libf.a"), str(folder / "f.o"))
    return (folder / "libf.a").read_bytes()


@cache
def debug_only(data: bytes) -> bytes:
    """Return the debug information of ``data``, split off."""
    folder = Path(tempfile.mkdtemp(dir=_workshop()))
    (folder / "whole").write_bytes(data)
    run("objcopy", "--only-keep-debug", str(folder / "whole"), str(folder / "debug"))
    return (folder / "debug").read_bytes()


@cache
def cross_compiler() -> str:
    """Return the name of the gcc for AArch64, or nothing where this machine has none."""
    name = "aarch64-linux-gnu-gcc"
    return name if shutil.which(name) else ""


@cache
def linkers() -> tuple[str, ...]:
    """Return the linkers that gcc can use here, the default one first."""
    return ("bfd", *(name for name in ("gold", "lld") if shutil.which(f"ld.{name}")))


def vgpu_hooks() -> tuple[str, ...]:
    """Return the hooks that libvgpu.so must export."""
    profile = profile_for("nvidia", "")
    assert profile is not None
    return profile.expectation("libvgpu.so").hooks


def rt_hooks() -> tuple[str, ...]:
    """Return the hooks that libvruntime.so must export."""
    profile = profile_for("ascend", "", "acl-dlopened")
    assert profile is not None
    return profile.expectation("libvruntime.so").hooks


def _functions(names: tuple[str, ...], prefix: str = "") -> str:
    return "".join(f"{prefix} int {name}(void) {{ return 0; }}\n" for name in names)


def vgpu(
    *flags: str,
    libraries: tuple[str, ...] = ("cuda", "nvidia-ml"),
    soname: str = "libvgpu.so",
    without: tuple[str, ...] = (),
    extra: str = "",
    prefix: str = "",
    scripts: str = "",
) -> bytes:
    """Return a libvgpu.so; ``libraries`` are kept in NEEDED, ``without`` are hooks left out."""
    names = tuple(name for name in vgpu_hooks() if name not in without)
    source = (
        f'#include <stdlib.h>\n{_functions(names, prefix)}char *env(void) {{ return getenv("X"); }}\n{extra}'
    )
    words = ["-shared", "-fPIC", "-Wl,--no-as-needed", *(f"-l{name}" for name in libraries)]
    words += [f"-Wl,-soname,{soname}"] if soname else []
    return compile_c(source, *words, *flags, scripts=scripts)


def _ascend_source(weak: tuple[str, ...], strong: tuple[str, ...], *, acl: bool) -> str:
    lines = ["#include <stdio.h>", "int memcpy_s(void);"]
    lines += [f"int __attribute__((weak)) {name}(void);" for name in weak]
    lines += [f"int {name}(void);" for name in strong]
    lines += ["int aclrtGetSocName(void);"] if acl else []
    calls = [*weak, *strong, "memcpy_s", *(["aclrtGetSocName"] if acl else [])]
    body = " ".join(f"sum += {name}();" for name in calls)
    lines.append(f'int work(void) {{ int sum = 0; {body} printf("%d", sum); return sum; }}')
    return "\n".join(lines) + "\n"


def vruntime(
    *flags: str,
    weak: tuple[str, ...] = DCMI,
    strong: tuple[str, ...] = (),
    acl: bool = False,
    libraries: tuple[str, ...] = ("c_sec",),
    without: tuple[str, ...] = (),
    extra: str = "",
    compiler: str = "gcc",
) -> bytes:
    """Return a libvruntime.so; ``acl`` refers to libascendcl, which ``libraries`` must then hold."""
    names = tuple(name for name in rt_hooks() if name not in without)
    source = _ascend_source(weak, strong, acl=acl) + _functions(names) + extra
    links = [f"-l{name}" for name in libraries]
    words = ["-shared", "-fPIC", "-Wl,-z,now", "-Wl,-soname,libvruntime.so", "-Wl,--as-needed", *links]
    return compile_c(source, *words, *flags, compiler=compiler)


def monitor(
    *flags: str,
    weak: tuple[str, ...] = DCMI,
    strong: tuple[str, ...] = (),
    acl: bool = False,
    libraries: tuple[str, ...] = ("c_sec",),
    pie: tuple[str, ...] = ("-pie", "-fPIE"),
    compiler: str = "gcc",
) -> bytes:
    """Return an enpu-monitor; ``pie`` are the flags that say what kind of executable it is."""
    source = _ascend_source(weak, strong, acl=acl) + "int main(void) { return work(); }\n"
    links = [f"-l{name}" for name in libraries]
    words = [*pie, "-Wl,--as-needed", "-Wl,--allow-shlib-undefined", *links]
    return compile_c(source, *words, *flags, compiler=compiler)
