"""The report's tables, shared by the terminal and the page."""

from __future__ import annotations

from precis.table import Table
from precis_judge.study_report import CriterionResult, JudgingReport, figure, p_text, percent


def pair_table(report: JudgingReport) -> Table:
    """Return the results of every pair of systems by every criterion."""
    return Table(
        title="Pairs",
        caption=(
            "Rate: share of verdicts for the first system in percent, a tie counting half; 95% interval over "
            f"{_over(report)}. Without ties: the same among the other verdicts, with an exact interval"
            f"{'' if report.is_of_one else ' that holds with one verdict a document'}. p: exact binomial test over "
            "documents, without ties."
        ),
        header=("criterion", "systems", "wins", "losses", "ties", "rate", "without ties", "p"),
        texts=("criterion", "systems"),
        rows=tuple(
            (
                one.name, f"{each.first} against {each.second}",
                *(f"{count:,}" for count in (each.wins, each.losses, each.ties)),
                percent(each.rate), percent(each.share_of_wins), p_text(each.p_documents),
            )
            for one in report.criteria
            for each in one.pairs
        ),
    )  # fmt: skip


def system_table(report: JudgingReport) -> Table:
    """Return the strengths, a row per system."""
    return Table(
        title="Systems",
        caption=(
            "Bradley-Terry strength: log-odds to win against the average system, with 95% interval over "
            f"{_over(report)}. A strength 1 higher than another means 73 wins in 100."
        ),
        header=("system", *(one.name for one in report.criteria)),
        texts=("system",),
        rows=tuple(
            (name, *(figure(one.strengths[name]) for one in report.criteria)) for name in report.systems
        ),
    )


def agreement_table(report: JudgingReport) -> Table:
    """Return Krippendorff's alpha, a row per criterion."""
    return Table(
        title="Agreement of judges",
        caption="Krippendorff's alpha, ordinal, with 95% interval: 1 is full agreement, 0 is chance.",
        header=("criterion", "alpha", "remark"),
        texts=("criterion", "remark"),
        rows=tuple((one.name, figure(one.alpha), one.alpha.note) for one in report.criteria),
    )


def judge_table(report: JudgingReport) -> Table:
    """Return the quality of each judge's work."""
    return Table(
        title="Judges",
        caption=(
            "In percent of answers, with exact 95% intervals. Same again: on repeated pages. Gold: rated the planted "
            "summary worse. Left: chose the left side, without ties."
        ),
        header=("judge", "pages", "same again", "gold", "left", "seconds per page"),
        texts=("judge",),
        rows=tuple(
            (
                one.judge, f"{one.done:,} of {one.pages:,}",
                *(percent(each) for each in (one.again, one.gold, one.left)),
                "-" if one.seconds is None else f"{one.seconds:.0f}",
            )
            for one in report.judges
        ),
    )  # fmt: skip


def tables(report: JudgingReport) -> list[Table]:
    """Return all tables, the results first; without agreement if there is only one judge."""
    agreement = [] if report.is_of_one else [agreement_table(report)]
    return [pair_table(report), system_table(report), *agreement, judge_table(report)]


def _over(report: JudgingReport) -> str:
    return "documents" if report.is_of_one else "documents and judges"


def anchor(one: CriterionResult) -> str:
    """Return the id of a criterion's section on the page."""
    return f"criterion-{one.key}"
