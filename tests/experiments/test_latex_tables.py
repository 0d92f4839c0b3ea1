"""A study's tables in LaTeX: what a reader of the Markdown sees, and nothing that LaTeX would choke on."""

from precis_experiments.experiment import markdown
from precis_experiments.latex_tables import latex


def test_a_table_has_booktabs_rules_and_its_cells() -> None:
    rows = [["a & b_1", "41.2 [40.0, 42.5]", "-"], ["**c**", "9.0 [8.0, 9.5]", "50%"]]
    text = latex("\n".join(["Before.", "", *markdown("system | ROUGE-1 | of all", rows), "- `bleu|v:1`"]))
    assert text.splitlines() == [
        r"% needs \usepackage{booktabs}",
        "Before.",
        "",
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"system & ROUGE-1 & of all \\",
        r"\midrule",
        r"a \& b\_1 & 41.2 [40.0, 42.5] & - \\",
        r"\textbf{c} & 9.0 [8.0, 9.5] & 50\% \\",
        r"\bottomrule",
        r"\end{tabular}",
        "",
        r"- \texttt{bleu|v:1}",
    ]


def test_what_latex_would_read_as_commands_is_escaped() -> None:
    assert latex(r"{a} \b ~ ^ $ # <c>").splitlines()[1] == (
        r"\{a\} \textbackslash{}b \textasciitilde{} \textasciicircum{} \$ \# \textless{}c\textgreater{}"
    )


def test_signs_and_quotation_marks_are_latexs() -> None:
    assert latex('"Above" is -1.5 [-2.0, -1.0] at `1e-05` of 1-7').splitlines()[1] == (
        r"``Above'' is $-$1.5 [$-$2.0, $-$1.0] at \texttt{1e-05} of 1-7"
    )


def test_a_bar_inside_a_cell_divides_nothing() -> None:
    assert r"a|b & 1 \\" in latex("| x | y |\n|---|---|\n| a\\|b | 1 |")
