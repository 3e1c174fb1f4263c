from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xbtasks.errors import UsageError
from xbtasks.knobs.resolve import resolve
from xbtasks.matrix.hostsfile import HostEntry, read_hosts

GOOD = """\
# ours
hosts:
  - name: gpu-1
    ssh: me@10.0.0.7:2222
    backends: [nvidia]
    gpus: [0, 1]
    gpu: auto
    knobs:
      stage-dir: /data/v gpu
      mem: 10
  - name: here
    ssh: local
  - {name: npu.910c, ssh: npu-alias, backends: ascend, npu: 3, chip: 1, vnpu: 7}
"""


CASES = [
    ("", 0, "names no host"),
    ("- a\n", 1, "a hosts file is a mapping with hosts"),
    ("\nhost:\n - name: a\n", 2, "'host' is no key of a hosts file; did you mean hosts?"),
    ("hosts:\n", 1, "hosts: is a list"),
    ("hosts: {}\n", 1, "hosts: is a list"),
    ("hosts: []\n", 1, "empty list"),
    ("hosts:\n - gpu-1\n", 2, "a host is a mapping"),
    ("hosts:\n - name: a\n", 2, "a host needs ssh:"),
    ("hosts:\n - ssh: a\n", 2, "a host needs name:"),
    ("hosts:\n - name: a\n   ssh: b\n   shs: c\n", 4, "'shs' is no key of a host; did you mean ssh?"),
    ("hosts:\n - name: a\n   ssh: b\n   zzz: c\n", 4, "'zzz' is no key of a host; name, ssh, backends"),
    ("hosts:\n - name: a\n   ssh: b\n   ssh: c\n", 4, "ssh is set twice; first on"),
    ("hosts:\n - name: a b\n   ssh: b\n", 2, "'a b' is no name for a host"),
    ("hosts:\n - name: ../x\n   ssh: b\n", 2, "no name for a host"),
    ("hosts:\n - name: [a]\n   ssh: b\n", 2, "name is one plain value"),
    ("hosts:\n - name: a\n   ssh: -oProxyCommand=x\n", 3, "is not a host"),
    ("hosts:\n - name: a\n   ssh: ssh://b\n", 3, "without a scheme"),
    ("hosts:\n - name: a\n   ssh: ''\n", 3, "is not a host"),
    ("hosts:\n - {name: a, ssh: b}\n - {name: a, ssh: c}\n", 3, "host a is named twice"),
    ("hosts:\n - name: a\n   ssh: b\n   backends: [nvida]\n", 4, "did you mean nvidia?"),
    ("hosts:\n - name: a\n   ssh: b\n   backends: []\n", 4, "empty list"),
    ("hosts:\n - name: a\n   ssh: b\n   backends: {x: y}\n", 4, "a backend is one plain value"),
    ("hosts:\n - name: a\n   ssh: b\n   npu: [1]\n", 4, "npu is one plain value"),
    ("hosts:\n - name: a\n   ssh: b\n   knobs: 4\n", 4, "knobs is a mapping"),
    ("hosts:\n - name: a\n   ssh: b\n   knobs:\n    stagedir: /x\n", 5, "did you mean stage_dir?"),
    ("hosts:\n - name: a\n   ssh: b\n   knobs:\n    host: c\n", 5, "host is not set for one host"),
    ("hosts:\n - name: a\n   ssh: b\n   knobs:\n    yes: 1\n", 5, "yes is not set for one host"),
    ("hosts:\n - name: a\n   ssh: b\n   gpu: 1\n   knobs:\n    gpu: 2\n", 6, "gpu is set twice"),
    ("hosts:\n - name: a\n   ssh: [\n", 4, "broken YAML"),
    ("hosts: &x\n - *x\n", 1, "a host is a mapping"),
    ("hosts:\n - name: a\n   ssh: b\n   <<: {npu: 1}\n", 4, "'<<' is no key"),
]
WRONG = [text for text, _, _ in CASES]
"""Texts that are no hosts file."""


def hosts(folder: Path, text: str) -> tuple[HostEntry, ...]:
    file = folder / "hosts.yaml"
    file.write_text(text)
    return read_hosts(file)


def test_a_file_of_hosts(tmp_path: Path) -> None:
    gpu, here, npu = hosts(tmp_path, GOOD)
    assert (gpu.name, gpu.destination, gpu.backends) == ("gpu-1", "me@10.0.0.7:2222", ("nvidia",))
    assert {name: entry.text for name, entry in gpu.values.items()} == {
        "mode": "ssh",
        "host": "me@10.0.0.7:2222",
        "gpus": "0,1",
        "gpu": "auto",
        "stage_dir": "/data/v gpu",
        "mem": "10",
    }
    assert gpu.values["mem"].place.endswith("hosts.yaml line 10")
    assert (here.destination, here.backends) == ("local", ("ascend", "nvidia"))
    assert here.values["mode"].text == "local"
    assert (npu.backends, npu.values["npu"].text, npu.values["vnpu"].text) == (("ascend",), "3", "7")


def test_what_a_host_says_is_weaker_than_a_flag_and_stronger_than_the_rest(tmp_path: Path) -> None:
    (gpu, *_) = hosts(tmp_path, GOOD)

    def settled(flags: dict[str, object]) -> tuple[object, ...]:
        found = resolve(
            flags,
            {"XB_STAGE": "/from/env", "XB_HOST": "other", "XB_SM": "7", "XB_MEM": "1"},
            user_file=None,
            explicit_user_file=False,
            project_file=None,
            host_file=gpu.values,
        )
        return (
            found.stage_dir,
            str(found.host),
            found.sm,
            found.mem,
            found.origin("stage_dir").rpartition(" line ")[2],
        )

    assert settled({}) == ("/data/v gpu", "me@10.0.0.7:2222", 7, 10, "9")
    assert settled({"stage_dir": "/typed"}) == ("/typed", "me@10.0.0.7:2222", 7, 10, "flag --stage-dir")


def test_a_bad_value_names_its_line(tmp_path: Path) -> None:
    (host,) = hosts(tmp_path, "hosts:\n - name: a\n   ssh: local\n   npu: 4g\n")
    with pytest.raises(UsageError, match=r"npu from .*hosts.yaml line 4: '4g' is not accepted"):
        resolve({}, {}, user_file=None, explicit_user_file=False, project_file=None, host_file=host.values)


@pytest.mark.parametrize(("text", "line", "said"), CASES)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        hosts(tmp_path, text)
    assert said in str(caught.value)
    if line:
        assert f"hosts.yaml line {line}: " in str(caught.value)


def test_there_is_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such configuration file"):
        read_hosts(tmp_path / "nothing.yaml")


def test_a_file_inside_a_project_is_refused(tmp_path: Path) -> None:
    inside, link = tmp_path / "project/config", tmp_path / "link.yaml"
    inside.mkdir(parents=True)
    (inside / "hosts.yaml").write_text(GOOD)
    link.symlink_to(inside / "hosts.yaml")
    for path in (inside / "hosts.yaml", inside / "../config/hosts.yaml", link):
        with pytest.raises(UsageError, match="never stored in a project"):
            read_hosts(path, outside=[tmp_path / "elsewhere", tmp_path / "project"])


@given(st.text(max_size=80))
def test_any_text_is_hosts_or_an_error(text: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "h.yaml"
        file.write_bytes(("hosts:\n - " + text).encode("utf-8", "surrogatepass"))
        try:
            assert read_hosts(file)
        except UsageError as error:
            said = str(error)
        else:
            said = ""
    assert said.isprintable()
