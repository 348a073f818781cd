"""Browser tests of the pictures of a job's tensors."""

import re
from collections.abc import Container
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from sdk_compat.demo.training_job import BUCKET
from smdebug.trials import create_trial
from tests.end_to_end.console.jobs_from_elsewhere import CLASSES, LOG_LINES, STRANGE_NAME, import_run
from tests.end_to_end.console.page import REGION, Console, find_violations
from tests.end_to_end.finished_jobs import download_run
from tests.waiting import wait_until


def test_plotted_values_are_the_trial_s(console: Console, ended: str, tmp_path: Path) -> None:
    trial = create_trial(str(download_run(console.emulator, BUCKET, ended, tmp_path)))
    page = console.go(f"jobs/{REGION}/{ended}/tensors")
    tensor = trial.tensor_names(collection="losses")[0]
    expect(page.get_by_role("checkbox", name=tensor)).to_be_checked()
    page.locator("figure summary").click()
    expected = {str(step): trial.tensor(tensor).value(step).item() for step in trial.tensor(tensor).steps()}
    rows = page.locator("figure details tbody tr")
    expect(rows).to_have_count(len(expected))
    # Training and evaluation each have a column, and a line.
    shown = {row.locator("th").inner_text(): float("".join(row.locator("td").all_inner_texts())) for row in rows.all()}
    assert shown == expected

    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    rows_of_csv = [line.split(",") for line in download.value.path().read_text().splitlines()]
    assert rows_of_csv[0][0] == "global step"
    assert {row[0]: float("".join(row[1:])) for row in rows_of_csv[1:]} == expected
    with page.expect_download() as download:
        page.get_by_role("button", name="PNG").click()
    assert download.value.path().read_bytes().startswith(b"\x89PNG")
    scale = page.get_by_role("button", name="Log scale")
    linear = read_picture(page)
    scale.click()
    expect(scale).to_have_attribute("aria-pressed", "true")
    logarithmic = wait_until(lambda: read_picture(page, but={linear}), "the picture with a logarithmic scale")
    page.get_by_label("Smoothing").fill("0.9")
    wait_until(lambda: read_picture(page, but={linear, logarithmic}), "the picture of the smoothed values")

    gradient = next(name for name in trial.tensor_names(collection="gradients") if name.endswith("weight"))
    page.get_by_label("Search tensors").fill(gradient)
    page.get_by_role("checkbox", name=gradient, exact=True).check()
    for kind, said in (("histogram", "share of values"), ("heat map", "gradients: abs_mean"), ("values", "Values")):
        page.get_by_role("button", name=kind, exact=True).click()
        expect(page.locator("figcaption", has_text=said)).to_be_visible()
    expect(page.locator("dl.pairs")).to_contain_text("float32")
    page.get_by_role("button", name="confusion").click()
    expect(page.locator(".problem")).to_contain_text("labels and predictions")


def read_picture(page: Page, but: Container[str] = ()) -> str:
    """Read what the first figure's canvas shows, as a data URL; empty if that is in ``but`` or no canvas is there.

    A figure draws itself on a new canvas after each change, so that a canvas may be gone a moment after it was found.
    """
    script = "() => document.querySelector('figure canvas')?.toDataURL() ?? ''"
    picture: str = page.evaluate(script)
    return "" if picture in but else picture


def test_classes_importances_and_strange_tensors_are_shown(console: Console, strange: str, axe: str) -> None:
    console.page.set_viewport_size({"width": 360, "height": 800})
    page = console.go(f"jobs/{REGION}/{strange}/tensors")
    expect(page.get_by_text("3 values are no finite numbers, the first at step 1.")).to_be_visible()

    page.get_by_role("button", name="confusion").click()
    expect(page.locator("figcaption", has_text="Labels \u00d7 predictions at step 5")).to_be_visible()
    cells = page.locator(".numbers tbody tr")
    assert [[int(cell) for cell in row.locator("td").all_inner_texts()] for row in cells.all()] == CLASSES
    assert find_violations(page, axe) == []

    page.get_by_role("button", name="importance").click()
    page.locator("label", has_text="By ").locator("select").select_option("weight")
    expect(page.locator("figcaption", has_text="Features \u00d7 rounds by weight")).to_be_visible()
    # By the last round: f11 is 7, f10 and f0 are 6.
    expect(page.locator(".names bdi").first).to_have_text("f11")
    page.locator("figure summary").click()
    expect(page.locator("figure details thead th").nth(1)).to_have_text("f11")
    assert page.locator("figure details thead th").all_inner_texts()[1:3] == ["f11", "f0"]
    rounds = page.locator("figure details tbody tr")
    assert [float(row.locator("td").first.inner_text()) for row in rounds.all()] == [12, 11, 10, 9, 8, 7]
    assert find_violations(page, axe) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360

    page.get_by_role("button", name="values", exact=True).click()
    for tensor, said in (("words", "<b>bold</b>"), ("empty", "0 \u00d7 4"), (STRANGE_NAME, "NaN")):
        page.get_by_label("Search tensors").fill(tensor)
        page.get_by_role("checkbox", name=tensor, exact=True).check()
        expect(page.locator(".main h2")).to_have_text(tensor)
        expect(page.locator(".main")).to_contain_text(said)
    page.get_by_role("button", name="histogram").click()
    expect(page.locator("figcaption", has_text="share of values")).to_contain_text(STRANGE_NAME)
    console.go(f"jobs/{REGION}/{strange}/logs")
    expect(page.get_by_role("log")).to_contain_text("<script>document.title='taken'</script>")
    assert page.locator("main img, main b, main script").count() == 0
    assert page.title().startswith(strange)


def test_an_address_that_names_a_picture_draws_it_as_its_controls_say(console: Console, strange: str) -> None:
    with console.page.expect_request(lambda request: "heat-map" in request.url) as asked:
        console.go(f"jobs/{REGION}/{strange}/tensors?picture=importance")
    assert "feature_importance%2Fweight%2F" in asked.value.url


def test_each_mode_and_worker_has_a_line_with_its_name(console: Console, ended: str, deep: str, axe: str) -> None:
    page = console.go(f"jobs/{REGION}/{deep}/tensors")
    named = [f"loss ({mode}, worker_{rank})" for mode in ("TRAIN", "EVAL") for rank in (0, 1)]
    page.locator("figure summary").click()
    heads = page.locator("figure details thead th")
    expect(heads).to_have_text(["global step", *named])
    assert [text for text in page.locator(".u-legend .u-label").all_inner_texts() if "loss" in text] == named
    columns = page.locator("figure details tbody tr").evaluate_all(
        "rows => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    assert columns[2] == ["2", "", "", "1002", "1102"]
    page.locator("label", has_text=re.compile("^Worker ")).locator("select").select_option("worker_1")
    expect(heads).to_have_text(["global step", "loss (TRAIN)", "loss (EVAL)"])
    page.locator("label", has_text=re.compile("^Mode ")).locator("select").select_option("EVAL")
    expect(heads).to_have_text(["global step", "loss"])
    assert find_violations(page, axe) == []
    console.go(f"compare?jobs={REGION}/{ended},{REGION}/{deep}")
    first = page.locator("figcaption").first.inner_text()
    page.locator("label", has_text=re.compile("^Show ")).locator("select").select_option("tensor loss")
    expect(page.locator("figcaption")).to_have_text([first, "loss"])
    page.get_by_role("button", name=f"Remove {first}").click()
    # The picture of what was shown first goes.
    expect(page.locator("figcaption")).to_have_text(["loss"])
    page.locator("figure summary").click()
    expect(heads).to_have_text(["global step", *(name.replace("loss", deep) for name in named)])


def test_pointing_at_the_tab_opens_the_run(console: Console, deep: str) -> None:
    page = console.go(f"jobs/{REGION}/{deep}")
    tab = page.get_by_role("link", name="Tensors", exact=True)
    expect(tab).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/tensors") else None)
    tab.evaluate("link => { link.dispatchEvent(new PointerEvent('pointerenter')); link.click(); }")
    expect(page.locator("figure canvas").first).to_be_visible()
    assert len(asked) == 1


def test_a_heat_map_shows_all_layers_in_their_order(console: Console, deep: str, axe: str) -> None:
    page = console.go(f"jobs/{REGION}/{deep}/tensors")
    page.get_by_role("button", name="heat map").click()
    canvas = page.locator("canvas.grid")
    expect(canvas).to_have_attribute("height", "502")
    titles = page.locator(".names bdi").evaluate_all("labels => labels.map((label) => label.title)")
    numbers = [int(title.removeprefix("gradient/net.")) for title in titles]
    assert numbers[0] == 0
    assert numbers == sorted(numbers)
    assert len(numbers) > 40
    assert find_violations(page, axe) == []
    canvas.focus()
    for key, said in (
        ("End", "net.501, step 0: 1"),
        ("PageUp", "net.481"),
        ("Home", "net.0, step 0: 0"),
        ("ArrowDown", "net.1"),
    ):
        page.keyboard.press(key)
        expect(page.locator("output")).to_contain_text(f"gradient/{said}")
        expect(page.locator(".tip")).to_contain_text(f"gradient/{said.partition(',')[0]}")
    page.get_by_label("Filter rows").fill("NET.50")
    expect(page.locator("figcaption")).to_contain_text("3 of 502 tensors")
    expect(page.locator(".names bdi")).to_have_text(["gradient/net.50", "gradient/net.500", "gradient/net.501"])
    page.get_by_label("Filter rows").fill("nothing")
    expect(page.locator("output")).to_have_text("There are no numbers to show.")


def test_what_another_version_wrote_or_is_damaged_is_named_and_a_long_log_read(console: Console, damaged: str) -> None:
    page = console.go(f"jobs/{REGION}/{damaged}/tensors")
    named = page.locator("[role=status] .problem")
    expect(named).to_contain_text("KeyError: 'WARMUP'")
    for step in (2, 3):
        expect(named).to_contain_text(f"The data of worker worker_0 at step {step} is lost")
    page.locator("figure summary").click()
    rows = page.locator("figure details tbody tr")
    expect(rows).to_have_count(6)
    assert rows.locator("td").all_inner_texts() == ["1", "4", "5", "6", "7", "8"]
    page.get_by_label("Search tensors").fill("weight")
    page.get_by_role("checkbox", name="weight", exact=True).check()
    note = page.locator("[data-note]")
    expect(note).to_contain_text("weight: 2 values are too large to be read, or damaged")
    page.get_by_role("button", name="values", exact=True).click()
    for step, said in ((5, "Its value takes 2.1 GB; values of up to 256 MB are shown."), (4, "is damaged")):
        page.get_by_label("Step", exact=True).fill(str(step))
        page.get_by_label("Step", exact=True).press("Enter")
        expect(page.locator(".main .problem")).to_contain_text(said)
    console.complaints[:] = [text for text in console.complaints if "422" not in text and "404" not in text]

    console.go(f"jobs/{REGION}/{damaged}/logs")
    log = page.get_by_role("log")
    expect(log).to_contain_text(f"line {LOG_LINES - 1}")
    expect(page.locator(".line")).to_have_count(500)
    page.get_by_role("button", name="Earlier lines").click()
    expect(page.locator(".line")).to_have_count(1000)
    page.get_by_label("Search the log").fill("line 3777")
    expect(page.locator(".line")).to_have_count(1)


UPSTREAM = "pt_modes"


# interop compares all values of such runs.
@pytest.mark.nightly
def test_a_run_that_upstream_wrote_is_shown(console: Console, ended: str, recorded_runs: Path, tmp_path: Path) -> None:
    run = recorded_runs / UPSTREAM / "run"
    import_run(console.emulator, ended, "console-upstream", run, [[1, "said"]])
    page = console.go(f"jobs/{REGION}/console-upstream/tensors")
    trial = create_trial(str(run))
    chosen = page.locator("input[type=checkbox]:checked").first
    expect(chosen).to_be_attached()
    tensor = trial.tensor(str(chosen.get_attribute("value")))
    page.locator("figure summary").click()
    rows = page.locator("figure details tbody tr")
    expect(rows).to_have_count(len(tensor.steps()))
    assert [float("".join(row.locator("td").all_inner_texts())) for row in rows.all()] == [
        float(np.mean(tensor.value(step), dtype=np.float64)) for step in tensor.steps()
    ]
