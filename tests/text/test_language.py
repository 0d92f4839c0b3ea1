"""What the lists of a language need."""

import subprocess
import sys

STEM = """
import sys
from precis_text.language import languages
assert languages()["en"].stem("boats") == "boat" and languages()["de"].stem("kosten") == "kost"
print(*{"scipy.stats", "sklearn", "pandas", "nltk"} & sys.modules.keys())
from nltk.metrics.association import fisher_exact
print(fisher_exact.__module__.partition(".")[0])
"""


def test_stems_need_no_library_of_statistics_and_leave_nltk_whole() -> None:
    done = subprocess.run([sys.executable, "-c", STEM], capture_output=True, text=True, check=True)
    loaded, source = done.stdout.split("\n")[:2]
    assert not loaded
    assert source == "scipy"
