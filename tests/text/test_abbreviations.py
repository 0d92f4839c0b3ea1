"""What abbreviations mean is found in the document, and told where a summary uses them without it."""

from time import process_time

import pytest

from precis_text.abbreviations import definitions, meanings_told, spelled_out, without_meanings
from precis_text.documents.passages import Passages
from precis_text.forms.form import ScoredText
from precis_text.forms.short_forms import KeyPoints
from precis_text.length import make_length
from precis_text.selection import join_units
from precis_text.units import extraction_units
from precis_text.words import length_in_words

DOCUMENT = """Sites of alternative polyadenylation (APA) and open reading frames (ORFs) are many.
APA needs no DNA here. The ORFs change with APA-mediated cleavage. Desoxyribonucleic acid (DNA) is long."""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The full width at half maximum (FWHM) grew.", {"FWHM": "full width at half maximum"}),
        ("We met the Code of Conduct Committee (CoCC) twice.", {"CoCC": "Code of Conduct Committee"}),
        ("Levels of deoxynivalenol (DON; Fig. 2) rose.", {"DON": "deoxynivalenol"}),
        ("Das Bundesamt für Sicherheit in der Informationstechnik (BSI) warnt.",
         {"BSI": "Bundesamt für Sicherheit in der Informationstechnik"}),
        ("The WTO (World Trade Organization) met.", {"WTO": "World Trade Organization"}),
        ("Differential expression (DE) was seen, and no differential growth.", {"DE": "differential expression"}),
        ("Total value locked (TVL) rose. In total, it fell.", {"TVL": "total value locked"}),
        ("Reading borough council (RBC) met. The Reading list is for reading.", {"RBC": "Reading borough council"}),
        ("Parkinson disease (PD) is rare.", {"PD": "Parkinson disease"}),
        ("The **Harbour Safety Board** (HSB) met.", {"HSB": "Harbour Safety Board"}),
        ("We like the General Services Administration’s (GSA) plan.", {"GSA": "General Services Administration"}),
        ('The "harbour waste charge" (HWC) is new. The “tall ships race” (TSR) is not.',
         {"HWC": "harbour waste charge", "TSR": "tall ships race"}),
        ('They asked for "partners" (PER).', {}),
        ("It is the U.S. Department of Agriculture (USDA).", {"USDA": "U.S. Department of Agriculture"}),
        ("They met at MIT. Total value locked (TVL) rose.", {"TVL": "Total value locked"}),
        ("The LTQ-Fourier Transform (FT) is fast.", {"FT": "Fourier Transform"}),
        ("Ann saw Sanger sequencing (SS). Picrosirius Red (PSR) is a stain. Paraformaldehyde (PFA) is none.",
         {"SS": "Sanger sequencing", "PSR": "Picrosirius Red", "PFA": "Paraformaldehyde"}),
        ("The plants of sequenced lines (Fig. 3) and (FF, SS) and/or heterozygous (FS) grew.", {}),
        ("The court (NASA) and the man (Bob) met the people at (ABC).", {}),
        ("The use can be classified into diarrhoea-predominant (UD) cases.", {}),
        ("Short bread (SB) is sweet. A soft bun (SB) is not.", {}),
        ("It rained. Apples were picked (RAP) by all.", {}),
        ("It rained after parties. (RAP) We left.", {}),
        ("Он пришёл домой вечером (дом). Il est préféré par les élèves répétés (préféré).", {}),
        ("The GlcNAc is converted to N-acetylglucosamine (GlcNAc-6P). So is the interleukin- (IL-) here.", {}),
        ("Reports of the CPU numbers 1 (CPUs) and the poolmon.exe (PoolMon) are long.", {}),
    ],
)  # fmt: skip
def test_definitions_are_found(text: str, found: dict[str, str]) -> None:
    assert definitions(text) == found


def _told(*places: int, words: int = 100) -> str:
    units = extraction_units(DOCUMENT)
    told = spelled_out(
        DOCUMENT,
        [units[place] for place in places],
        lambda some: length_in_words(join_units(DOCUMENT, some)) <= words,
    )
    return join_units(DOCUMENT, told)


def test_the_first_use_without_its_definition_says_what_it_means() -> None:
    assert _told(1) == "APA [alternative polyadenylation] needs no DNA here."
    assert _told(1, 2).count("[alternative polyadenylation]") == 1
    assert _told(2) == "The ORFs [open reading frames] change with APA-mediated cleavage."


def test_nothing_is_added_where_the_summary_says_it_or_everybody_knows_it() -> None:
    assert "[" not in _told(0, 1)
    assert "DNA [" not in _told(1)


@pytest.mark.parametrize(
    "text",
    [
        "See www.HSB.org, info@HSB.org, HSB.txt, #HSB and the HSB:latest image.",
        "Run `make HSB` first, as [the HSB guide](guide.md) says.",
        "Let $HSB$ be HSB^2 or HSB=3, by the HSB–FAO pact.",
        "THE HSB DISCLAIMS ALL.",
        "It was bought from Acme, Waltham, MA, at 5 PM.",
    ],
)
def test_nothing_is_added_to_code_addresses_formulas_towns_and_times(text: str) -> None:
    document = "The Harbour Safety Board (HSB) met. Mass average (MA) and particulate matter (PM) rose."
    assert meanings_told(document, [text], lambda _: True) == [text]


def test_a_meaning_is_not_told_inside_another_one() -> None:
    document = "Remote CVD (RCVD) and chemical vapour deposition (CVD) differ."
    told = meanings_told(document, ["RCVD is slow.", "CVD is fast."], lambda _: True)
    assert told == ["RCVD [Remote CVD] is slow.", "CVD [chemical vapour deposition] is fast."]


@pytest.mark.parametrize(
    "document",
    ["A" + "a" * 20_000, "(" + "".join(f"Big Safety Board{n} (BSB{n}). " for n in range(2_000))],
    ids=["a long word", "many abbreviations"],
)
def test_no_document_takes_long(document: str) -> None:
    began = process_time()
    meanings_told(f"({document}", [document], lambda _: False)
    assert process_time() - began < 1


def test_nothing_is_added_beyond_the_length() -> None:
    assert _told(1, words=6) == "APA needs no DNA here."
    assert _told(1, words=7) == "APA [alternative polyadenylation] needs no DNA here."


def test_a_quotation_is_found_without_what_was_added() -> None:
    assert without_meanings(_told(1), definitions(DOCUMENT)) == "APA needs no DNA here."
    assert (
        without_meanings("APA [another pale ale] needs", definitions(DOCUMENT))
        == "APA [another pale ale] needs"
    )


def test_the_name_of_a_speaker_stays_before_what_is_said() -> None:
    talk = (
        "Ann: The site of alternative polyadenylation (APA) is known.\nBob: Does APA change?\nAnn: APA does."
    )
    units = extraction_units(talk)
    told = join_units(talk, spelled_out(talk, units[2:], lambda _: True))
    assert told == "Ann: APA [alternative polyadenylation] does."


def test_points_say_it_too_within_their_cap() -> None:
    units = extraction_units(DOCUMENT)
    source = ScoredText(Passages(DOCUMENT), units, [10] * 4, [0.1, 0.9, 0.8, 0.1], 60.0)

    def first(words: int | None = None, tokens: int | None = None) -> str:
        return KeyPoints().lines(source, make_length(words=words, tokens=tokens))[0].shown

    assert first(words=13) == "APA [alternative polyadenylation] needs no DNA here."
    assert first(words=12) == "APA needs no DNA here."
    assert first(tokens=20) == "APA needs no DNA here."
