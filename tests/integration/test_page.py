"""The HTML page in a real browser: what is seen on a desk, on a phone, in the dark, by a screen reader."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

from tests.unit.result_samples import HOSTILE, RESULT, hostile
from xbtasks.reporting.html import render
from xbtasks.reporting.markup import visible
from xbtasks.result import merge

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from xbtasks.result import Result

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
LONG = "user@" + "a-very-long-name-of-a-host." * 9 + "internal:2222"
MATRIX = merge(
    [replace(RESULT, host="a"), replace(RESULT, host=LONG)], run=RESULT.run, command="matrix", evidence="/e"
)
WORST = hostile(" ".join(HOSTILE).encode("utf-8", "replace").decode() + "x" * 3000)
PAGES = {"one": RESULT, "matrix": MATRIX, "hostile": WORST}


class Browser:
    """A headless Chromium that shows pages."""

    def __init__(self, folder: Path) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options, Service("/usr/bin/chromedriver"))
        self._page = folder / "page.html"

    def show(self, result: Result, *, width: int = 1200, dark: bool = False) -> None:
        """Open the page of ``result`` in a window of ``width`` pixels."""
        self._page.write_text(render(result), "utf-8")
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.devtools("Emulation.setEmulatedMedia", features=[scheme])
        self.driver.get_log("performance")
        self.driver.get(self._page.as_uri())

    def devtools(self, command: str, **values: Any) -> Any:
        return self.driver.execute_cdp_cmd(command, values)

    def run(self, script: str) -> Any:
        return self.driver.execute_script(script)

    def open_all(self) -> None:
        self.run("document.querySelectorAll('details').forEach(each => each.open = true)")

    def requests(self) -> list[str]:
        """Return what was asked for since the page was opened."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [each["params"] for each in messages if each["method"] == "Network.requestWillBeSent"]
        return [each["request"]["url"] for each in sent]

    def complaints(self) -> list[str]:
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.driver.quit()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_itself_and_nothing_else_and_nothing_is_complained_about(
    browser: Browser, name: str
) -> None:
    browser.show(PAGES[name])
    browser.open_all()
    assert [url.partition(":")[0] for url in browser.requests() if url != "data:,"] == ["file"]
    assert browser.complaints() == []
    assert browser.run("return document.compatMode") == "CSS1Compat"


WIDE = """
return [...document.body.querySelectorAll(':not(thead *)')]
  .filter(each => each.getBoundingClientRect().right > innerWidth + 1)
  .map(each => each.outerHTML.slice(0, 200));
"""


@pytest.mark.parametrize("width", [320, 360, 768, 1200])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_wider_than_the_window(browser: Browser, name: str, width: int) -> None:
    browser.show(PAGES[name], width=width)
    browser.open_all()
    assert browser.run(WIDE) == []
    assert browser.run("return document.documentElement.scrollWidth") == width


def test_what_failed_is_in_sight_and_the_rest_one_click_away(browser: Browser) -> None:
    browser.show(RESULT)
    failed, *_, last = browser.driver.find_elements(By.CSS_SELECTOR, "details[id^=case-]")
    assert "Expected\n0644\nObserved\n0600" in failed.text
    skipped = browser.driver.find_element(By.ID, "case-0-1")
    assert "no profile knows the pin" not in skipped.text
    skipped.find_element(By.TAG_NAME, "summary").click()
    assert "no profile knows the pin" in skipped.text
    skipped.find_element(By.TAG_NAME, "summary").click()
    assert "no profile knows the pin" not in skipped.text
    assert last.find_element(By.TAG_NAME, "summary").text.startswith("!ERROR")


def test_a_cell_of_the_grid_leads_to_its_case(browser: Browser) -> None:
    browser.show(MATRIX)
    browser.driver.find_elements(By.CSS_SELECTOR, ".grid td a")[-1].click()
    target = browser.run("return document.querySelector(':target').id")
    assert target == "case-3-1"
    assert browser.run("return document.querySelector(':target').getBoundingClientRect().top") < 900


def test_a_keyboard_reaches_the_results_first(browser: Browser) -> None:
    browser.show(RESULT)
    browser.devtools("Input.dispatchKeyEvent", type="keyDown", key="Tab", code="Tab", windowsVirtualKeyCode=9)
    assert browser.run("return document.activeElement.textContent") == "Skip to the results"
    assert browser.run("return document.activeElement.getBoundingClientRect().left") >= 0


@pytest.mark.parametrize("width", [360, 1200])
def test_a_screen_reader_gets_landmarks_and_tables_with_headers(browser: Browser, width: int) -> None:
    browser.show(MATRIX, width=width)
    browser.open_all()
    nodes = browser.devtools("Accessibility.getFullAXTree")["nodes"]
    roles = [node["role"]["value"] for node in nodes if not node.get("ignored")]
    for role in ("banner", "main", "contentinfo", "navigation", "note"):
        assert roles.count(role) == 1, role
    tables = len(browser.driver.find_elements(By.TAG_NAME, "table"))
    assert roles.count("table") == tables
    assert roles.count("row") == len(browser.driver.find_elements(By.TAG_NAME, "tr"))
    assert roles.count("columnheader") == len(browser.driver.find_elements(By.CSS_SELECTOR, "thead th"))
    assert roles.count("rowheader") == len(browser.driver.find_elements(By.CSS_SELECTOR, "tbody th"))
    names = {node["name"]["value"] for node in nodes if node["role"]["value"] == "table"}
    assert "Verdict of each case on each stage of a" in names


CONTRAST = """
const number = text => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
  .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const behind = each => {
  for (; each; each = each.parentElement) {
    const colour = getComputedStyle(each).backgroundColor;
    if (!colour.startsWith('color(') && (number(colour)[3] ?? 1) === 1) return number(colour);
  }
  return [255, 255, 255];
};
const ratio = each => {
  const [a, b] = [light(number(getComputedStyle(each).color)), light(behind(each))].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
};
const told = [...document.body.querySelectorAll('*')].filter(each =>
  [...each.childNodes].some(child => child.nodeType === 3 && child.textContent.trim()));
return told.map(each => [ratio(each), each.outerHTML.slice(0, 120)]).sort((x, y) => x[0] - y[0]);
"""


@pytest.mark.parametrize("dark", [False, True])
def test_everything_can_be_read_in_the_light_and_in_the_dark(browser: Browser, dark: bool) -> None:
    browser.show(RESULT, dark=dark)
    browser.open_all()
    found = browser.run(CONTRAST)
    assert len(found) > 100
    lowest, where = found[0]
    assert lowest >= 4.5, where
    back = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (back == "rgb(14, 18, 23)") is dark


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_shown_and_nothing_of_it_is_done(browser: Browser, text: str) -> None:
    browser.show(hostile(text.encode("utf-8", "replace").decode()))
    browser.open_all()
    assert (
        browser.run("return document.querySelectorAll('script, img, h1 ~ h1, [onclick], [onerror]').length")
        == 0
    )
    facts = browser.run("return document.querySelector('.facts').textContent")
    assert visible(text.encode("utf-8", "replace").decode()) in facts
    assert browser.complaints() == []
