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


THREADS = """
import sys, threading
from precis_text.language import languages
languages()
start, done, seen, wrong = threading.Barrier(3), threading.Event(), set(), []
def stem():
    start.wait()
    try:
        wrong.extend([languages()["en"].stem("boats")] if languages()["en"].stem("boats") != "boat" else [])
    except BaseException as error:
        wrong.append(repr(error))
threads = [threading.Thread(target=stem) for _ in range(2)]
for thread in threads:
    thread.start()
start.wait()
while any(thread.is_alive() for thread in threads):
    seen |= {name for name in ("scipy.stats", "sklearn", "nltk", "nltk.stem") if name in sys.modules}
print(wrong, seen)
"""


def test_two_threads_stem_first_at_once_and_other_threads_see_no_change() -> None:
    """Another thread may import scipy or nltk at any moment."""
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, check=True)
    assert done.stdout == "[] set()\n"
