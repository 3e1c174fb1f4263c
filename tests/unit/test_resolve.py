from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xbtasks.errors import ExitCode, UsageError
from xbtasks.knobs.cards import Auto, GpuIndex
from xbtasks.knobs.references import HostSpec
from xbtasks.knobs.resolve import default_user_file, resolve, unknown_variables
from xbtasks.knobs.settings import Settings, Source, describe
from xbtasks.knobs.table import KNOBS, Knob, knob

if TYPE_CHECKING:
    from collections.abc import Iterator

# two good texts for each knob; the second is what `inv knobs` prints
SAMPLES: dict[str, tuple[str, str]] = {
    "mode": ("local", "ssh"),
    "host": ("root@npu-1:22", "npu-2"),
    "repo": ("/src/a", "/src/b"),
    "dockerfile": ("a/Dockerfile", "b/Dockerfile"),
    "platform": ("linux/amd64", "linux/arm64"),
    "image": ("a:1", "b:2"),
    "workload_image": ("a:3", "b:4"),
    "stage_dir": ("/a b", "/b"),
    "remote_ctx": ("/ctx/a", "~/b"),
    "engine": ("docker", "docker"),
    "builder": ("one", "two"),
    "ssh_config": ("/etc/a", "/etc/b"),
    "host_keys": ("strict", "accept-new"),
    "connect_timeout": ("1", "3600"),
    "timeout": ("1", "86400"),
    "build_timeout": ("1", "604800"),
    "banner_re": ("^a", "^b"),
    "yes": ("yes", "no"),
    "npu": ("1", "255"),
    "chip": ("1", "15"),
    "vnpu": ("1", "99"),
    "aicore": ("1", "100"),
    "mem": ("1", "2147483647"),
    "gpu": ("3", "auto"),
    "gpus": ("3,2", "auto"),
    "sm": ("1", "100"),
    "profile": ("needed", "pre-weak"),
    "max_glibc": ("2.28", "2.34"),
}

# for each knob texts that are just outside, of another kind, or dangerous
BAD: dict[str, tuple[str, ...]] = {
    "mode": ("SSH", "remote", "ssh ", "local,ssh"),
    "host": ("-oProxyCommand=id", "a b", "root@", "h:0", "h;id", "fe80::1"),
    "repo": ("a\nb", "~no-such-user-here/x"),
    "dockerfile": ("a\0b", "x" * 4096),
    "platform": ("linux/amd64,linux/arm64", "amd64", "linux/riscv64"),
    "image": ("A", "a:", "a b", "--push", "a@sha256:" + "0" * 64),
    "workload_image": ("A", "a@x", "a'b"),
    "stage_dir": ("opt", "/", "/..", "/a\nb", "xbuild-nvidia-cuda-13"),
    "remote_ctx": ("ctx", "~", "/", "~/..", "~root/x"),
    "engine": ("podman", "nerdctl", "none", "DOCKER", "/usr/bin/docker"),
    "builder": ("-x", "a b", "a;b"),
    "ssh_config": ("a\x1bb",),
    "host_keys": ("no", "Strict", "accept_new"),
    "connect_timeout": ("0", "3601", "20s", "1.5", "-1"),
    "timeout": ("0", "86401", "5m"),
    "build_timeout": ("0", "604801", "2h"),
    "banner_re": ("(", "a" * 1001),
    "yes": ("y", "2", "maybe"),
    "npu": ("-1", "256", "0x1", "00"),
    "chip": ("16", "a"),
    "vnpu": ("100", "-1"),
    "aicore": ("0", "101", "20%"),
    "mem": ("0", "-1", "4g", "010", "0x10", "\uff11", "1_000", "4096 --privileged", " 4096", "2147483648"),
    "gpu": ("0,1", "256", "all", "-1"),
    "gpus": ("0,0", "0,,1", "0-1", "auto,0", "all"),
    "sm": ("0", "101", "50.0"),
    "profile": ("Needed", "fast"),
    "max_glibc": ("2", "GLIBC_2.34", "2.034", "3.0"),
}

ALL = pytest.mark.parametrize("entry", KNOBS, ids=lambda entry: entry.name)


class Sources:
    """Two configuration files in a folder, and what flags and environment say."""

    def __init__(self, folder: Path) -> None:
        self.flags: dict[str, object] = {}
        self.environ: dict[str, str] = {}
        self.project = folder / "project" / "config" / "invoke.yaml"
        self.user = folder / "user.yaml"
        self.project.parent.mkdir(parents=True)

    def write(self, source: Source, entry: Knob, text: str) -> None:
        match source:
            case Source.FLAG:
                self.flags[entry.name] = text
            case Source.VARIABLE:
                self.environ[entry.env] = text
            case Source.USER_FILE:
                self.user.write_text(f"# user\n{entry.name}: {text}\n", "utf-8")
            case Source.PROJECT_FILE:
                self.project.write_text(f"# project\n\n{entry.name}: {text}\n", "utf-8")
            case Source.DEFAULT:
                raise AssertionError("nothing to write")

    def resolve(self, *, explicit: bool = False) -> Settings:
        return resolve(
            self.flags,
            self.environ,
            user_file=self.user,
            explicit_user_file=explicit,
            project_file=self.project,
        )


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    return Sources(tmp_path)


def one_line(error: UsageError) -> str:
    text = str(error)
    assert error.exit_code == ExitCode.USAGE
    assert text.isprintable()
    assert len(text) < 400
    return text


def value_text(settings: Settings, name: str) -> str:
    return next(row.value for row in describe(settings) if row.name == name)


def test_samples_cover_the_table() -> None:
    assert set(SAMPLES) == set(BAD) == {entry.name for entry in KNOBS}


class TestPrecedence:
    @ALL
    @pytest.mark.parametrize(
        "strongest", [s for s in Source if s is not Source.DEFAULT], ids=lambda s: s.name
    )
    @pytest.mark.parametrize("swap", [False, True])
    def test_the_strongest_source_wins(
        self, sources: Sources, entry: Knob, strongest: Source, swap: bool
    ) -> None:
        won, lost = SAMPLES[entry.name][:: -1 if swap else 1]
        stored = [Source.PROJECT_FILE] if entry.name != "host" else []
        if strongest not in [Source.FLAG, Source.VARIABLE, Source.USER_FILE, *stored]:
            return
        for source in (Source.FLAG, Source.VARIABLE, Source.USER_FILE, *stored):
            if source >= strongest:
                sources.write(source, entry, won if source is strongest else lost)
        settings = sources.resolve()
        assert settings.origin_of(entry.name).source is strongest
        assert value_text(settings, entry.name) == won

    @ALL
    def test_nothing_given_is_the_default(self, sources: Sources, entry: Knob) -> None:
        settings = sources.resolve()
        assert settings.origin(entry.name) == "default"
        if entry.default and entry.name != "ssh_config":
            assert value_text(settings, entry.name) == entry.default

    @ALL
    def test_labels(self, sources: Sources, entry: Knob) -> None:
        labels = {
            Source.FLAG: f"flag {entry.flag or entry.name}",
            Source.VARIABLE: entry.env,
            Source.USER_FILE: f"{sources.user} line 2",
            Source.PROJECT_FILE: "config/invoke.yaml line 3",
        }
        text = SAMPLES[entry.name][0]
        for source in sorted(labels, reverse=True):
            if (entry.name, source) == ("host", Source.PROJECT_FILE):
                continue
            sources.write(source, entry, text)
            assert sources.resolve().origin(entry.name) == labels[source]

    @ALL
    def test_a_value_that_loses_is_not_judged(self, sources: Sources, entry: Knob) -> None:
        sources.write(Source.VARIABLE, entry, BAD[entry.name][0])
        with pytest.raises(UsageError):
            sources.resolve()
        sources.write(Source.FLAG, entry, SAMPLES[entry.name][0])
        assert sources.resolve().origin_of(entry.name).source is Source.FLAG


class TestEmpty:
    @ALL
    def test_an_empty_variable_is_unset(self, sources: Sources, entry: Knob) -> None:
        sources.write(Source.USER_FILE, entry, SAMPLES[entry.name][0])
        sources.write(Source.VARIABLE, entry, "")
        assert sources.resolve().origin_of(entry.name).source is Source.USER_FILE

    @ALL
    def test_an_empty_file_value_is_unset(self, sources: Sources, entry: Knob) -> None:
        sources.write(Source.USER_FILE, entry, "")
        assert sources.resolve().origin(entry.name) == "default"

    @ALL
    def test_an_empty_flag_is_an_error(self, sources: Sources, entry: Knob) -> None:
        sources.write(Source.FLAG, entry, "")
        with pytest.raises(UsageError, match="a value is missing") as caught:
            sources.resolve()
        assert entry.flag in one_line(caught.value)

    def test_a_blank_is_not_empty(self, sources: Sources) -> None:
        sources.environ["XB_MEM"] = " "
        with pytest.raises(UsageError):
            sources.resolve()


class TestBadValues:
    @pytest.mark.parametrize(
        ("name", "text"), [(name, text) for name, texts in BAD.items() for text in texts]
    )
    def test_message_names_knob_value_origin_and_what_is_accepted(
        self, sources: Sources, name: str, text: str
    ) -> None:
        entry = knob(name)
        sources.write(Source.VARIABLE, entry, text)
        with pytest.raises(UsageError) as caught:
            sources.resolve()
        line = one_line(caught.value)
        shown = repr(text if len(text) <= 60 else text[:57] + "...")
        assert line.startswith(f"{name} from {entry.env}: {shown} is not accepted; accepted: {entry.accepts}")

    def test_a_file_says_its_line(self, sources: Sources) -> None:
        sources.project.write_text("sm: 50\nmem: 0x10\n", "utf-8")
        with pytest.raises(UsageError, match=r"mem from config/invoke\.yaml line 2: '0x10' is not accepted"):
            sources.resolve()

    def test_hints_reach_the_user(self, sources: Sources) -> None:
        for env, text, hint in (
            ("XB_MEM", "4g", "write 4096"),
            ("XB_MODE", "SSH", "write ssh"),
            ("XB_PLATFORM", "linux/amd64,linux/arm64", "one platform per run"),
            ("XB_CTR", "podman", 'come with "Hosts without docker"'),
        ):
            with pytest.raises(UsageError) as caught:
                resolve({}, {env: text}, user_file=None, explicit_user_file=False, project_file=None)
            assert hint in caught.value.hint

    @ALL
    @given(text=st.text(st.characters(exclude_categories=())))
    def test_any_variable_resolves_or_is_refused_in_one_line(self, entry: Knob, text: str) -> None:
        try:
            settings = resolve(
                {}, {entry.env: text}, user_file=None, explicit_user_file=False, project_file=None
            )
        except UsageError as error:
            one_line(error)
        else:
            assert (settings.origin(entry.name) == "default") == (text == "")

    def test_bounds_are_told(self) -> None:
        for name, bounds in {
            "connect_timeout": "1 to 3600",
            "timeout": "1 to 86400",
            "build_timeout": "1 to 604800",
            "npu": "0 to 255",
            "chip": "0 to 15",
            "vnpu": "0 to 99",
            "aicore": "1 to 100",
            "sm": "1 to 100",
            "mem": "1 to 2147483647",
        }.items():
            assert bounds in knob(name).accepts
            low, high = bounds.split(" to ")
            for text in (low, high):
                resolve({name: text}, {}, user_file=None, explicit_user_file=False, project_file=None)
            for text in (str(int(low) - 1), str(int(high) + 1)):
                with pytest.raises(UsageError):
                    resolve({name: text}, {}, user_file=None, explicit_user_file=False, project_file=None)


class TestFlags:
    def test_what_invoke_gives_for_an_absent_flag(self, sources: Sources) -> None:
        sources.flags = dict.fromkeys((entry.name for entry in KNOBS), None)
        sources.flags["yes"] = False
        sources.environ = {"XB_YES": "1"}
        settings = sources.resolve()
        assert settings.yes
        assert settings.origin("yes") == "XB_YES"
        assert settings.origin("mem") == "default"

    def test_yes(self, sources: Sources) -> None:
        sources.flags = {"yes": True}
        sources.environ = {"XB_YES": "no"}
        assert sources.resolve().yes
        assert sources.resolve().origin("yes") == "flag --yes"

    def test_numbers_and_lists(self, sources: Sources) -> None:
        sources.flags = {"mem": 5, "gpus": ["0,1", "3"], "gpu": 0}
        settings = sources.resolve()
        assert settings.mem == 5
        assert settings.gpus == (GpuIndex(0), GpuIndex(1), GpuIndex(3))
        assert settings.gpu == GpuIndex(0)

    def test_an_empty_list_is_absent(self, sources: Sources) -> None:
        sources.flags = {"gpus": []}
        assert sources.resolve().origin("gpus") == "default"

    def test_a_flag_without_its_value(self, sources: Sources) -> None:
        sources.flags = {"mem": True}
        with pytest.raises(UsageError, match="flag --mem: a value is missing"):
            sources.resolve()

    @pytest.mark.parametrize(
        "flags", [{"mem": 1.5}, {"mem": ["1"]}, {"gpus": [0, 1]}, {"gpus": {}}, {"memory": "1"}]
    )
    def test_what_invoke_never_gives_is_a_bug(self, sources: Sources, flags: dict[str, object]) -> None:
        sources.flags = flags
        with pytest.raises(TypeError):
            sources.resolve()


class TestHostAndMode:
    def test_never_from_the_project_file(self, sources: Sources) -> None:
        sources.write(Source.PROJECT_FILE, knob("host"), "npu-1")
        with pytest.raises(UsageError, match=r"config/invoke\.yaml line 3: host is never read") as caught:
            sources.resolve()
        assert "XB_HOST" in caught.value.hint

    def test_not_even_when_a_flag_wins_or_it_is_empty(self, sources: Sources) -> None:
        sources.flags["host"] = "npu-1"
        for text in ("npu-2", ""):
            sources.write(Source.PROJECT_FILE, knob("host"), text)
            with pytest.raises(UsageError, match="never read"):
                sources.resolve()

    def test_nor_from_another_file_in_the_project(self, sources: Sources) -> None:
        inside = sources.project.parent.parent / "my.yaml"
        inside.write_text("host: npu-1\n", "utf-8")
        link = sources.user.parent / "link.yaml"
        link.symlink_to(inside)
        for file in (inside, link):
            sources.user = file
            with pytest.raises(UsageError, match="line 1: host is never read"):
                sources.resolve(explicit=True)

    def test_a_file_outside_may(self, sources: Sources) -> None:
        sources.write(Source.USER_FILE, knob("host"), "npu-1")
        for explicit in (True, False):
            assert sources.resolve(explicit=explicit).host == HostSpec("npu-1")

    @pytest.mark.parametrize(
        ("mode", "host"),
        [
            (Source.FLAG, Source.FLAG),
            (Source.FLAG, Source.VARIABLE),
            (Source.VARIABLE, Source.VARIABLE),
            (Source.VARIABLE, Source.USER_FILE),
            (Source.PROJECT_FILE, Source.FLAG),
            (Source.VARIABLE, Source.FLAG),
            (Source.USER_FILE, Source.VARIABLE),
        ],
    )
    def test_local_with_a_host(self, sources: Sources, mode: Source, host: Source) -> None:
        sources.write(mode, knob("mode"), "local")
        sources.write(host, knob("host"), "npu-1")
        if host < mode:
            with pytest.raises(
                UsageError, match=r"host from .* is npu-1, but mode from .* is local"
            ) as caught:
                sources.resolve()
            assert "--mode ssh" in caught.value.hint
            return
        settings = sources.resolve()
        assert settings.mode == "local"
        assert settings.host is None
        assert len(settings.warnings) == 1
        assert settings.warnings[0].startswith("host npu-1 from ")

    def test_a_bad_host_is_refused_in_local_mode_too(self, sources: Sources) -> None:
        sources.environ = {"XB_MODE": "local", "XB_HOST": "-x"}
        with pytest.raises(UsageError):
            sources.resolve()

    def test_mode_is_never_guessed(self, sources: Sources) -> None:
        sources.environ = {"XB_MODE": "SSH", "XB_HOST": "x@127.0.0.1"}
        with pytest.raises(UsageError, match="mode from XB_MODE: 'SSH'"):
            sources.resolve()


class TestPaths:
    @pytest.mark.parametrize("name", ["repo", "ssh_config"])
    def test_a_relative_path_in_a_file_is_refused(self, sources: Sources, name: str) -> None:
        for source in (Source.PROJECT_FILE, Source.USER_FILE):
            sources.write(source, knob(name), "a/b")
            with pytest.raises(
                UsageError, match=rf"{name} from .* line \d: a path in a file must be absolute"
            ):
                sources.resolve()
        sources.write(Source.VARIABLE, knob(name), "a/b")
        assert value_text(sources.resolve(), name) == "a/b"

    def test_home(self, sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", "/home/me")
        sources.write(Source.USER_FILE, knob("repo"), "~/src")
        settings = sources.resolve()
        assert settings.repo == Path("/home/me/src")
        assert settings.ssh_config == Path("/home/me/.ssh/config")
        assert settings.remote_ctx == "~/.cache/xbtasks/ctx"


class OnlyKnobs(Mapping[str, str]):
    """An environment whose values may be read only if they are xbtasks' own."""

    def __init__(self, values: dict[str, str]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> str:
        assert name in {entry.env for entry in KNOBS}, f"{name} was read"
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class TestEnvironment:
    def test_only_our_variables_are_read(self) -> None:
        environ = OnlyKnobs({"XB_MEM": "5", "XB_FOO": "1", "INVOKE_XB_MEM": "6", "HOME": "/x", "MEM": "7"})
        settings = resolve({}, environ, user_file=None, explicit_user_file=False, project_file=None)
        assert settings.mem == 5
        assert len(settings.warnings) == 1

    @pytest.mark.parametrize(
        ("name", "nearest"),
        [
            ("XB_MEMORY", "XB_MEM"),
            ("XB_MEN", "XB_MEM"),
            ("XB_STAGE_DIR", "XB_STAGE"),
            ("XB_ENGINE", "XB_CTR"),
            ("XB_HOSTS", "XB_HOST"),
            ("XB_HOSTKEYS", "XB_HOST_KEYS"),
            ("XB_PLATTFORM", "XB_PLATFORM"),
        ],
    )
    def test_unknown_names_warn_with_the_nearest(self, name: str, nearest: str) -> None:
        assert unknown_variables({name: "x"}) == (f"{name} is not a knob; did you mean {nearest}?",)

    def test_nothing_near(self) -> None:
        assert unknown_variables({"XB_": "", "XB_QQQQQQQQ": ""}) == (
            "XB_ is not a knob; `inv knobs` lists them",
            "XB_QQQQQQQQ is not a knob; `inv knobs` lists them",
        )

    def test_known_and_foreign_names_are_quiet(self) -> None:
        assert (
            unknown_variables({entry.env: "" for entry in KNOBS} | {"PATH": "", "XBOX": "", "xb_mem": ""})
            == ()
        )

    def test_odd_names_are_escaped(self) -> None:
        (line,) = unknown_variables({"XB_\x1b[31m\n" + "x" * 100: ""})
        assert line.isprintable()
        assert len(line) < 150

    def test_warnings_come_with_the_settings(self, sources: Sources) -> None:
        sources.environ = {"XB_MEMM": "1"}
        assert sources.resolve().warnings == ("XB_MEMM is not a knob; did you mean XB_MEM?",)


class TestFiles:
    def test_a_missing_explicit_file(self, sources: Sources) -> None:
        sources.resolve(explicit=False)
        with pytest.raises(UsageError, match="there is no such configuration file") as caught:
            sources.resolve(explicit=True)
        assert str(sources.user) in one_line(caught.value)

    def test_an_unknown_key_is_an_error_whatever_wins(self, sources: Sources) -> None:
        sources.user.write_text("memm: 1\n", "utf-8")
        sources.flags = {"mem": "5"}
        with pytest.raises(UsageError, match="'memm' is not a knob; did you mean mem"):
            sources.resolve()

    def test_labels_are_short_and_printable(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        for name, label in (("a.yaml", "~/a.yaml line 1"), ("b\n.yaml", r"'~/b\n.yaml' line 1")):
            (tmp_path / name).write_text("mem: 5\n", "utf-8")
            settings = resolve({}, {}, user_file=tmp_path / name, explicit_user_file=True, project_file=None)
            assert settings.origin("mem") == label

    def test_the_root_is_nobodys_home(self, sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", "/")
        sources.write(Source.USER_FILE, knob("mem"), "5")
        assert sources.resolve().origin("mem") == f"{sources.user} line 2"

    def test_default_place(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", "/home/me")
        assert default_user_file({}) == Path("/home/me/.config/xbtasks.yaml")
        assert default_user_file({"XDG_CONFIG_HOME": ""}) == Path("/home/me/.config/xbtasks.yaml")
        assert default_user_file({"XDG_CONFIG_HOME": "relative"}) == Path("/home/me/.config/xbtasks.yaml")
        assert default_user_file({"XDG_CONFIG_HOME": "/etc/x"}) == Path("/etc/x/xbtasks.yaml")


def test_typed_values(sources: Sources) -> None:
    settings = sources.resolve()
    assert settings.gpu == GpuIndex(0)
    assert settings.gpus == (GpuIndex(0), GpuIndex(1))
    assert (settings.connect_timeout, settings.timeout, settings.build_timeout) == (20, 300, 7200)
    assert settings.banner_re.search("Last login: Mon")
    assert not settings.banner_re.search("FAIL | nvidia.case1.mode")
    assert (settings.npu, settings.chip, settings.vnpu, settings.aicore) == (0, 0, 0, 20)
    assert settings.dockerfile == Path("pack/gpustack-operator/Dockerfile")
    assert settings.yes is False
    sources.environ = {"XB_GPUS": "auto", "XB_MAX_GLIBC": "2.9"}
    settings = sources.resolve()
    assert settings.gpus is Auto.AUTO
    assert settings.max_glibc is not None
    assert settings.max_glibc < (2, 28)


def test_yaml_is_not_imported_without_a_file() -> None:
    import subprocess

    program = (
        "import sys; from xbtasks.knobs.resolve import resolve; "
        "resolve({}, {}, user_file=None, explicit_user_file=False, project_file=None); "
        "print([name for name in ('yaml', 'difflib', 'fabric', 'invoke') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
