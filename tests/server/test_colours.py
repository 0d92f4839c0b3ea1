"""Text on the pages of precis has a contrast of at least 4.5:1 in light and dark, computed from their style sheets.

`tests/browser` measures the same on the pages as a browser draws them; this needs no browser.
"""

import re
from importlib.resources import files

import pytest

SHEETS = {
    name: files(package).joinpath(path).read_text(encoding="utf-8")
    for name, package, path in (
        ("service", "precis.server", "page/page.css"),
        ("judge", "precis_judge", "page/page.css"),
        ("judge report", "precis_judge", "report_page.css"),
        ("comparison", "precis.evaluation", "offline_page.css"),
    )
}
LEGIBLE, VISIBLE = 4.5, 3.0  # WCAG 2.2: text; the outline of the focus and of fields
SCHEMES = ("light", "dark")
MARKS = re.compile(r"mark|\.on\b")  # highlighted passages, which are in the colour of text
SHAPES = ("#bar", "#progress", ".f", ".t", ".s")  # backgrounds without text
Pair = tuple[str, str]


def colours(sheet: str, scheme: str) -> dict[str, tuple[float, ...]]:
    """The variables of a sheet in a scheme: `light-dark(a, b)`, or a second `:root` for dark."""
    found: dict[str, tuple[float, ...]] = {}
    for number, block in enumerate(re.findall(r":root\s*\{([^}]*)\}", sheet)):
        for name, value in re.findall(r"--([\w-]+):\s*([^;]+);", block):
            both = re.findall(r"#[0-9a-f]{3,8}\b", value)
            if both and (number == 0 or scheme == "dark"):
                found[name] = channels(both[-1] if scheme == "dark" else both[0])
    return found


def channels(colour: str) -> tuple[float, ...]:
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
    return tuple(int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4))


def contrast(text: tuple[float, ...], ground: tuple[float, ...], opacity: float = 1) -> float:
    """WCAG's ratio of the luminances, 1 to 21."""
    mixed = tuple(opacity * own + (1 - opacity) * below for own, below in zip(text, ground, strict=True))
    low, high = sorted(map(luminance, (mixed, ground)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: tuple[float, ...]) -> float:
    red, green, blue = (
        (part / 12.92) if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in colour
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def rules(sheet: str) -> list[tuple[str, dict[str, str]]]:
    """Selector and properties of each rule, also of those inside @media."""
    found = re.findall(r"([^{}]+)\{([^{}]*)\}", re.sub(r"@media[^{]*\{", "", sheet))
    return [
        (selector.strip(), dict(re.findall(r"(?:^|[;\s])([\w-]+):\s*([^;]+)", body)))
        for selector, body in found
    ]


def variable(value: str | None) -> str:
    found = re.match(r"var\(--([\w-]+)\)", value or "")
    return found[1] if found else ""


def pairs(sheet: str) -> tuple[set[Pair], float]:
    """The colours of text with those of its grounds, and the smallest opacity of text that can be used."""
    styles = [(selector, each) for selector, each in rules(sheet) if not selector.startswith(":root")]
    given = [(selector, variable(s.get("color")), variable(s.get("background")), s) for selector, s in styles]
    grounds = {
        ground
        for selector, text, ground, _ in given
        if ground
        and (not text or text == "ink")
        and not MARKS.search(selector)
        and not any(shape in selector.replace(",", " ").split() for shape in SHAPES)
    }
    found = {(text, ground) for _, text, ground, _ in given if text and ground}
    found |= {("ink", ground) for _, text, ground, _ in given if ground and not text and ground in grounds}
    found |= {
        ("ink", ground)
        for selector, text, ground, _ in given
        if ground and not text and MARKS.search(selector)
    }
    found |= {(text, ground) for _, text, over, _ in given if text and not over for ground in grounds}
    opacities = [
        float(style["opacity"])
        for selector, _, _, style in given
        if "opacity" in style and "disabled" not in selector  # which needs no contrast
    ]
    return found, min(opacities, default=1.0)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", SHEETS)
def test_text_is_legible_on_every_ground(name: str, scheme: str) -> None:
    sheet = SHEETS[name]
    found, _ = pairs(sheet)
    values = colours(sheet, scheme)
    assert len(found) >= 5
    low = {pair: contrast(values[pair[0]], values[pair[1]]) for pair in found}
    assert {pair: round(ratio, 2) for pair, ratio in low.items() if ratio < LEGIBLE} == {}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ["service", "judge"])
def test_the_names_of_keys_are_legible_on_every_button(name: str, scheme: str) -> None:
    values, (found, opacity) = colours(SHEETS[name], scheme), pairs(SHEETS[name])
    buttons = {pair for pair in found if pair[0] in ("ink", "accent-ink", "on-accent")}
    low = {pair: contrast(values[pair[0]], values[pair[1]], opacity) for pair in buttons}
    assert {pair: round(ratio, 2) for pair, ratio in low.items() if ratio < LEGIBLE} == {}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_text_in_the_bars_of_a_report_is_legible(scheme: str) -> None:
    values = colours(SHEETS["judge report"], scheme)
    for text, ground in (("on", "first"), ("on", "second"), ("ink", "tie")):
        assert contrast(values[text], values[ground]) >= LEGIBLE, (text, ground)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    ("name", "grounds"), [("service", ("ground", "pane")), ("judge", ("ground", "card", "accent-soft"))]
)
def test_the_focus_and_the_edge_of_a_field_are_visible(
    name: str, grounds: tuple[str, ...], scheme: str
) -> None:
    sheet = SHEETS[name]
    values = colours(sheet, scheme)
    outlines = [
        style["outline"]
        for selector, style in rules(sheet)
        if "focus-visible" in selector and "outline" in style
    ]
    assert outlines
    assert all(line == "3px solid var(--accent)" for line in outlines)
    fields = [
        (s, style)
        for s, style in rules(sheet)
        if re.search(r"(input|textarea)\b(?!:)", s) and "border" in style
    ]
    edges = {found for _, style in fields for found in re.findall(r"var\(--([\w-]+)\)", style["border"])}
    assert edges
    for colour in ("accent", *edges):
        low = {ground: contrast(values[colour], values[ground]) for ground in grounds}
        assert min(low.values()) >= VISIBLE, (colour, low)
