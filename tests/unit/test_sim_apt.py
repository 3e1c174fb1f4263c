"""The private apt: what it reads of the system's sources and settings."""

from __future__ import annotations

from xbtasks.sim.apt import IndexTarget, choose_repository, own_settings, parse_index_targets

URI = "http://mirror.example/packages/"


def target(release: str, *, uri: str = URI, component: str = "main") -> IndexTarget:
    return IndexTarget(uri, release, component)


def test_index_targets_are_read_once_each() -> None:
    text = (
        f"{URI}\tbookworm\tmain\n{URI}\tbookworm\tmain\n{URI}\tbookworm\tcontrib\n"
        "http://other.example/\tstable\tmain\n"
    )
    assert parse_index_targets(text) == (
        target("bookworm"),
        target("bookworm", component="contrib"),
        target("stable", uri="http://other.example/"),
    )


def test_lines_that_are_no_index_target_are_left_out() -> None:
    text = f"N: a notice of apt\n\n{URI}\t\tmain\n{URI}\tbookworm\tmain\textra\n{URI}\ttrixie\tmain"
    assert parse_index_targets(text) == (target("trixie"),)


def test_the_repository_is_the_one_of_the_release_not_its_updates_or_another_vendors() -> None:
    targets = (
        target("bookworm", uri="http://vendor.example/", component="stable"),
        target("bookworm-security", uri="http://security.example/"),
        target("bookworm"),
    )
    assert choose_repository(targets, "bookworm") == URI


def test_a_source_that_follows_a_moving_release_serves_too() -> None:
    assert choose_repository((target("stable"),), "trixie") == URI
    assert choose_repository((target("oldstable"),), "bookworm") == URI


def test_the_exact_release_goes_before_a_moving_one() -> None:
    targets = (target("stable", uri="http://other.example/"), target("bookworm"))
    assert choose_repository(targets, "bookworm") == URI


def test_installation_media_are_no_repository() -> None:
    assert choose_repository((target("bookworm", uri="cdrom:[Debian 12]/"),), "bookworm") is None


def test_no_source_at_all() -> None:
    assert choose_repository((), "bookworm") is None


def test_only_how_to_reach_a_repository_is_taken_over() -> None:
    dump = (
        'APT::Architecture "amd64";\n'
        'APT::Update::Post-Invoke:: "rm -f /var/cache/apt/archives/*.deb";\n'
        'Acquire "";\n'
        'Acquire::http::Proxy "http://proxy.example:3128";\n'
        'Acquire::Languages "de";\n'
        'Acquire::IndexTargets::deb::DEP-11::MetaKey "x";\n'
        'DPkg::Post-Invoke:: "true";\n'
    )
    assert own_settings(dump) == ('Acquire::http::Proxy "http://proxy.example:3128";',)
