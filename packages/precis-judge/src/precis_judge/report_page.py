"""The report as one HTML file: no scripts, no other files, plots as SVG in light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from precis.storage.atomic import write_file
from precis.table import Table
from precis_judge.judging_study import open_study
from precis_judge.report_tables import anchor, tables
from precis_judge.study_report import CriterionResult, JudgingReport, figure, make_report, percent
from precis_judge.verdict_statistics import Estimate, PairResult
from precis_text.errors import UserError, install_line

_STYLE = files("precis_judge").joinpath("report_page.css").read_text("utf-8")
_WIDTH, _LABEL, _VALUE, _ROW = 860, 250, 150, 34
_CSP = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def publish(
    folder: Path, *, leave_out: Sequence[str] = (), seed: int = 0
) -> tuple[JudgingReport, list[Table]]:
    """Write report.json and report.html; return the report and its tables.

    Raises:
        UserError: the study or its verdicts are missing, or evalica is not installed.
    """
    study = open_study(folder)
    try:
        report = make_report(study, leave_out=leave_out, seed=seed)
    except ModuleNotFoundError as error:
        raise UserError(
            f"reports need {error.name}, which is not installed: {install_line('judge')}"
        ) from None
    write_file(folder / "report.json", report.to_json())
    write_file(folder / "report.html", report_page(report))
    return report, tables(report)


def report_page(report: JudgingReport) -> str:
    """Return the page. Text by users or judges is escaped."""
    return "\n".join(_parts(report)) + "\n"


def _parts(report: JudgingReport) -> Iterator[str]:
    yield '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_CSP}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    title = f"Human verdicts: {escape(', '.join(report.systems))}"
    yield f"<title>{title}</title><style>{_STYLE}</style></head><body><main><h1>{title}</h1>"
    judges = len(report.judges)
    yield (
        f'<p class="soft">{escape(report.title)}. {report.verdicts:,} verdicts on {report.documents:,} documents by '
        f"{judges} judge{'s' if judges != 1 else ''}.</p>"
    )
    if report.remarks:
        items = "".join(f"<li>{escape(one)}</li>" for one in report.remarks)
        yield f'<section class="warn"><h2>Before you use the figures</h2><ul>{items}</ul></section>'
    for one in report.criteria:
        yield from _criterion(one, agreement=not report.is_of_one)
    for table in tables(report):
        yield f"<section><h2>{table.title}</h2>{_table(table)}<p class='soft'>{escape(table.caption)}</p></section>"
    yield from _reasons(report)
    yield "</main></body></html>"


def _criterion(one: CriterionResult, *, agreement: bool) -> Iterator[str]:
    yield f'<section id="{anchor(one)}"><h2>{escape(one.name)}</h2><p class="soft">{escape(one.question)}</p>'
    yield "<h3>Verdicts</h3>"
    yield (
        '<p class="key"><span><i class="f"></i>first system better</span><span><i class="t"></i>the same</span>'
        '<span><i class="s"></i>second system better</span></p>'
    )
    yield _svg("Verdicts of each pair", len(one.pairs), _shares(one.pairs))
    yield "<h3>Share for the first system, a tie counting half</h3>"
    rates = [(_name(each), each.rate, f"{percent(each.rate)} %") for each in one.pairs]
    yield _svg(
        "Win rates with intervals", len(rates) + 1, _intervals(rates, (0.0, 1.0), 0.5, as_percent=True)
    )
    if len(one.strengths) > 2:
        yield "<h3>Bradley-Terry strength</h3>"
        rows = [(name, each, figure(each)) for name, each in one.strengths.items()]
        ends = [
            abs(end) for _, each, _ in rows for end in (each.value, each.low, each.high) if end is not None
        ]
        reach = max([1.0, *ends]) * 1.1
        yield _svg("Strengths with intervals", len(rows) + 1, _intervals(rows, (-reach, reach), 0.0))
    note = f" ({escape(one.alpha.note)})" if one.alpha.note else ""
    if agreement:
        yield f'<p class="soft">Agreement of judges (Krippendorff\'s alpha): {figure(one.alpha)}{note}</p>'
    yield "</section>"


def _name(pair: PairResult) -> str:
    return f"{pair.first} : {pair.second}"


def _svg(title: str, rows: int, content: Iterator[str]) -> str:
    shape = f'viewBox="0 0 {_WIDTH} {rows * _ROW}" role="img" aria-label="{escape(title)}"'
    return f'<div class="wide"><svg {shape} style="min-width:34rem">{"".join(content)}</svg></div>'


def _label(text: str, y: float) -> str:
    short = text if len(text) <= 34 else f"{text[:33]}…"
    return f'<text x="0" y="{y + 4}">{escape(short)}<title>{escape(text)}</title></text>'


def _shares(pairs: Sequence[PairResult]) -> Iterator[str]:
    """Yield a bar per pair: wins, ties, losses, each with its number."""
    for row, one in enumerate(pairs):
        y, x = row * _ROW + _ROW / 2, float(_LABEL)
        yield _label(_name(one), y)
        whole = max(one.wins + one.ties + one.losses, 1)
        for kind, ink, count in (("f", "in", one.wins), ("t", "tie", one.ties), ("s", "in", one.losses)):
            width = (_WIDTH - _LABEL) * count / whole
            yield f'<rect class="{kind}" x="{x:.1f}" y="{y - 11}" width="{width:.1f}" height="22"/>'
            if width > 34:
                yield f'<text class="{ink}" x="{x + width / 2:.1f}" y="{y + 5}" text-anchor="middle">{count:,}</text>'
            x += width


def _intervals(
    rows: Sequence[tuple[str, Estimate, str]],
    span: tuple[float, float],
    zero: float,
    *,
    as_percent: bool = False,
) -> Iterator[str]:
    """Yield a dot with its interval per row, on an axis with a line at `zero`; an open end has an arrow."""
    low, high = span
    right = _WIDTH - _VALUE

    def place(value: float) -> float:
        return _LABEL + (right - _LABEL) * (min(max(value, low), high) - low) / (high - low)

    bottom = len(rows) * _ROW
    yield f'<line class="axis" x1="{_LABEL}" x2="{right}" y1="{bottom}" y2="{bottom}"/>'
    yield f'<line class="zero" x1="{place(zero):.1f}" x2="{place(zero):.1f}" y1="0" y2="{bottom}"/>'
    for step in range(5):
        value = low + (high - low) * step / 4
        text = f"{100 * value:.0f} %" if as_percent else f"{value:.1f}"
        yield f'<text class="soft" x="{place(value):.1f}" y="{bottom + 18}" text-anchor="middle">{text}</text>'
    for row, (name, one, said) in enumerate(rows):
        y = row * _ROW + _ROW / 2
        yield _label(name, y)
        yield f'<text x="{_WIDTH}" y="{y + 5}" text-anchor="end">{escape(said)}</text>'
        if one.value is None and one.low is None and one.high is None:
            continue
        ends = place(low if one.low is None else one.low), place(high if one.high is None else one.high)
        yield f'<line class="bar" x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" y1="{y}" y2="{y}"/>'
        for end, is_open, sign in ((ends[0], one.low is None, -1), (ends[1], one.high is None, 1)):
            if is_open:
                yield f'<path class="dot" d="M{end + 9 * sign:.1f} {y}l{-9 * sign} -6v12z"/>'
        if one.value is not None:
            yield f'<circle class="dot" cx="{place(one.value):.1f}" cy="{y}" r="6"/>'


def _table(table: Table) -> str:
    kinds = ["" if name in table.texts else ' class="n"' for name in table.header]

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(f"<{tag}{kind}>{escape(text)}</{tag}>" for kind, text in zip(kinds, row, strict=True))

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in table.rows)
    head = f"<thead><tr>{cells('th', table.header)}</tr></thead>"
    return f'<div class="wide"><table>{head}<tbody>{body}</tbody></table></div>'


def _reasons(report: JudgingReport) -> Iterator[str]:
    if not report.reasons:
        return
    yield f"<section><h2>Reasons</h2><details><summary>{len(report.reasons):,} reasons by the judges</summary>"
    for one in report.criteria:
        mine = [reason for reason in report.reasons if reason.criterion == one.key]
        if mine:
            yield f"<h3>{escape(one.name)}</h3>"
        for each in mine:
            against = f" over {each.other}" if each.other else ""
            yield (
                f'<p class="soft">{escape(each.better + against)} · document {escape(each.document)} · '
                f"{escape(each.judge)}</p><blockquote>{escape(each.text)}</blockquote>"
            )
    yield "</details></section>"
