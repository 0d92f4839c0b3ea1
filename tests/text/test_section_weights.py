"""Sentences of methods count less than others, those of conclusions more."""

from precis_text.section_weights import section_weights
from precis_text.units import extraction_units


def weights(document: str) -> dict[str, float]:
    units = extraction_units(document)
    told = zip(units, section_weights(units), strict=True)
    return {unit.text.partition(" ")[0]: weight for unit, weight in told if not unit.heading}


def test_methods_have_parts_and_conclusions_end_with_any_heading() -> None:
    paper = """1. Introduction

Water is short in many towns.

2. Materials and methods

Pumps were read each week.

2.1 The wells

Wells were dug by hand.

3. What we saw

Levels fell in May.

4. Conclusions

Rain alone fills the wells.

Thanks to the town

Ann helped us much.
"""
    assert weights(paper) == {
        "Water": 1.0, "Pumps": 0.25, "Wells": 0.25, "Levels": 1.0, "Rain": 1.6, "Ann": 1.0,
    }  # fmt: skip


def test_methods_end_with_the_next_listed_heading_if_nothing_is_numbered() -> None:
    paper = "Methods\n\nPumps were read.\n\nThe wells\n\nWells were dug.\n\nResults\n\nLevels fell.\n"
    assert weights(paper) == {"Pumps": 0.25, "Wells": 0.25, "Levels": 1.0}


def test_methods_of_a_report_without_results_end_with_any_heading() -> None:
    report = "Methodology\n\nWe asked the towns.\n\nThe price of water\n\nIt rose by half.\n"
    assert weights(report) == {"We": 0.25, "It": 1.0}


def test_acknowledgements_count_least_in_other_languages_too() -> None:
    assert weights("Danksagung\n\nWir danken der Stadt.\n\nFazit\n\nDas Wasser reicht.\n") == {
        "Wir": 0.1,
        "Das": 1.6,
    }


def test_what_a_company_says_of_itself_counts_less_and_notes_to_editors_little() -> None:
    job = "About us\n\nWe build pumps.\n\nAbout the pump\n\nIt lifts water.\n\nNotes to editors\n\nPhotos are free.\n"
    assert weights(job) == {"We": 0.05, "It": 1.0, "Photos": 0.1}
    assert weights(job.replace("About us", "Who we are"))["We"] == 1.0


def test_the_method_of_a_recipe_is_its_main_part_and_its_ingredients_are_not() -> None:
    method = "Method\n\nCook the leeks with the butter.\n"
    assert weights(f"Ingredients\n\nThree leeks of the garden are enough.\n\n{method}") == {
        "Three": 0.1,
        "Cook": 1.0,
    }
    assert weights(f"The wells\n\nWater is short.\n\n{method}") == {"Water": 1.0, "Cook": 0.25}


def test_a_report_with_a_heading_for_ingredients_is_no_recipe() -> None:
    report = "Ingredients\n\nDye was found in tea.\n\nMethods\n\nSamples were frozen.\n\nResults\n\nForty had dye.\n"
    assert weights(report) == {"Dye": 1.0, "Samples": 0.25, "Forty": 1.0}


def test_what_a_proposal_does_not_want_hardly_counts() -> None:
    proposal = """# Boats for all

## Goals

Boats should be free for pupils.

## Non-Goals

Any repair of engines.

## Risks

Pupils may be wet.
"""
    assert weights(proposal) == {"Boats": 1.0, "Any": 0.1, "Pupils": 1.0}


def test_a_label_within_a_paragraph_weighs_its_sentence() -> None:
    found = weights(
        "Methods: We read pumps. Conclusão: A água falta. Wells: They were dug by hand. Rain fell."
    )
    assert found == {"Methods:": 0.25, "Conclusão:": 1.6, "Wells:": 1.0, "Rain": 1.0}


def test_a_single_label_says_nothing_and_a_recipe_has_other_labels() -> None:
    assert weights("Pumps have changed. Experimental: The new pump is quick.") == {
        "Pumps": 1.0,
        "Experimental:": 1.0,
    }
    recipe = weights("Ingredients: Two eggs are needed.\n\nMethod: Beat the eggs for a minute.")
    assert recipe == {"Ingredients:": 0.1, "Method:": 1.0}


def test_what_a_report_of_a_bug_expects_is_not_what_happens() -> None:
    report = "## Bug\n\nThe pump stops at night.\n\n## Expected behavior\n\nIt runs on.\n"
    assert weights(report) == {"The": 1.0, "It": 0.1}
