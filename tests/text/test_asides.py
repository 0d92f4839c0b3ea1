"""What is not a statement is marked, and statements are not."""

import pytest

from precis_text.asides import Asides
from precis_text.units import extraction_units

PROSE = "The club bought a pump on Monday. It costs 420 euros and replaces one of 1987."


def chosen(*lines: str) -> list[str]:
    document = "\n\n".join([PROSE, *lines, PROSE])
    return [unit.text for unit in extraction_units(document)[2:-2] if not (unit.aside or unit.heading)]


@pytest.mark.parametrize(
    "line",
    [
        "Figure 1: The old pump in its house, which stood until May.",
        "Table 2. Litres of two pumps in a dry year.",
        "Abbildung 3: Die alte Pumpe im Jahr 1987.",
        "Photo: Ann Ode of the club took this picture.",
        "Pump | Litres a minute | Price in euros in 2026.",
        "North\t12\t340\nSouth\t14\t420\nEast\t9\t210",
        "A 12    300 litres    420 euros",
        "2024 12.4 18.6 340 and 7",
        "1 The pump .......... 3\n2 The price ......... 7",
        "Duties of the board 11 The old wall and its movement 27 The new quay 41 Money 55",
        "From: Karen Vik\nSent: 11 March 2026 16:42\nTo: Ben Lee\nSubject: RE: The pump.",
        "Posted: Thursday 12 March at noon.",
        "Mooring: 420 euros a year",
        "\u00a9 Copyright Pump Corp. 2014.",
        "Copyright 2014 by the pump club.",
        "ISBN 978-3-00-000000-0.",
        "Dear members of the club,",
        "Sehr geehrte Frau Vik,",
        "With kind regards, Ann Ode.",
        "Mit freundlichen Gr\u00fc\u00dfen.",
        "pumps@club.example or www.club.example",
        "Members: Ann Ode, Ben Lee, Cem Kaya, Dora Vik and Eli Moe.",
        "if pump.level > 3 then\n  pump.stop();\nend",
        "$ pip install pump",
        "def start(pump): pump.run(level=3)",
        "Smith, J. A pump for a village. Journal of Wells 12, 8 (1969).",
        "[2] Ode, A. Pumps that last. Harbour Press, 2011.",
        "Produced by Ann Ode and the Online Distributed Proofreading Team at https://pump.example",
        "Produced by Ann Ode, Ben Lee and the Online",
        "For more information about the pump, see Pumps 6.20.",
        "For more details on the change logs for the month, visit the Factory mailing list.",
        "For further details, please refer to the manual of the pump.",
        "To learn more about pumps, see the pump house.",
        "Weitere Informationen zur Pumpe finden Sie im Heft.",
        "Pour en savoir plus sur la pompe, consultez le cahier.",
        "Para más información sobre la bomba, consulte el cuaderno.",
        "Transcriber's Note: the pump was printed as pomp.",
        "Open it in your browser.",
        "This blog post was also cross-posted on the blog of the hall.",
        "This blog post was also cross-posted on the Friends of Pump and Harbour's blog and the blog of the hall.",
        "This article originally appeared in the harbour news.",
        "You get this letter as a member of the club.",
        "You can unsubscribe at any time.",
        "Skip to main content",
        "We use cookies to make this page better.",
        "All rights reserved.",
        "Anwesend waren Frau Vik und Herr Lee.",
        "Apologies were: Ann Ode and Ben Lee.",
        "Thank you very much for the talk yesterday.",
        "Hi !",
        "Okay, um, good morning everyone.",
        "Can you all hear me at the back?",
        "I allow my child ________ to come along.",
        "Vielen Dank für das Gespräch gestern.",
        "Merci beaucoup pour la réunion d'hier.",
        "Muchas gracias por la reunión de ayer.",
        "The pump stood in its house until May. [Photo: Ann Ode/HP]",
        "Die alte Pumpe vor dem Haus des Vereins. Foto: A. Moe",
        "Home > Clubs > Pumps",
        "By Ann Ode, Harbour Correspondent",
        "Share  Save  Comments (212)",
        "Compartir en Facebook  Ir a los comentarios",
        "READ MORE: The boss of the club was paid 740,000 euros in one year",
        "Archivado en: Agua, Bombas",
        "All notable changes to this pump will be documented in this file.",
        "Please consider the environment before printing this letter",
        "Reviewed in Norland on May 1, 2026",
        "58 people found this helpful",
        "Rezension aus Norland vom 1. Mai 2026",
        "Ships from and sold by Pump Hall.",
        "Olmol 2,5 mg 1-0-1",
        "Most read\n1. Woman, 94, finds a pump\n2. What time is the talk tonight?",
        "Das könnte Sie auch interessieren\nPumpen im Winter",
        "Pumpen Olm eG, Markt 3, 24999 Olm · Vorstand: Dr. Ann Ode (Vors.), Ben Lee · GnR 123 · USt-IdNr. DE123456789",
        "Pumpen GmbH · Geschäftsführer: Ann Ode · Amtsgericht Olm HRB 4711",
        "Pump Hall Ltd. Registered office: 12 Quay Road, Olm. Registered in England No. 0471123.",
        "LEGGI ANCHE: Maltempo, scuole chiuse in tutta la provincia",
        "Читайте также: Какие дороги отремонтируют в области в 2024 году",
        "Iscriviti alla nostra newsletter per ricevere ogni mattina le notizie più importanti.",
        "14 ноября 2023, 11:20. Автор: Алёна Зимина. Фото: Пресс-служба администрации",
        "Подписывайтесь на наш канал в Telegram. При использовании материалов ссылка на сайт обязательна. 16+",
        "Having trouble reading this newsletter?",
        "Can't find what you're looking for? Chat with Skipper, our virtual assistant!",
        "Was this page helpful?",
        "Olm Funeral Home, Lake Olm, 555-0142. Online condolences at www.olmfh.example.",
        "Published in the Olm Herald from Feb. 9 to Feb. 11, 2024.",
        "To plant a tree in memory of Ann, please visit our Tribute Store.",
        "Pump Hall Ltd, 1 Loom Street, Olm.",
        "et",
        "- and -",
        "Dieses Schreiben wurde maschinell erstellt und ist ohne Unterschrift gültig.",
        "Dieser Bescheid wurde maschinell erstellt.",
        "This letter was generated automatically and needs no signature.",
        "This is a computer-generated invoice.",
        "Ce courrier a été généré automatiquement, il ne porte pas de signature.",
        "Reading time: 6 minutes.",
        "Время чтения: 7 мин.",
        "Anuncio actualizado hace 3 días.",
        "By clicking on this you agree to the rules of the club.",
        "Promoted by A. Ode on behalf of the Pump Party, 1 Quay Road, Olm.",
        "At Pump Hall, we take your privacy very seriously.",
        "Автор: Алёна Зимина · 7 мин. чтения · 4 марта 2024 г.",
        "All notable changes to the pump are documented here.",
        "Documento firmato digitalmente. Página 2 de 3",
        "ООО «Насос», ИНН 7700000000, г. Олм, ул. Кирова, д. 21.",
        "V Olmu dne 1. 3. 2025",
        "Nur noch 4 Stück auf Lager!",
        "Código seguro de verificación: ABCD1234",
        "Gentile dott.ssa Rossi,",
        "Исх. № 318 от 05.06.2024",
        "Please do not hesitate to contact us if you have any questions.",
        "If you have any further questions, please feel free to ask us.",
        "Für Rückfragen stehen wir Ihnen jederzeit gerne zur Verfügung.",
        "Nous vous prions d'agréer, Madame, l'expression de nos salutations distinguées.",
        "Sin otro particular, reciba un cordial saludo.",
        "Restiamo a disposizione per ogni chiarimento e porgiamo distinti saluti.",
        "Sem outro assunto de momento, apresentamos os nossos melhores cumprimentos.",
        "Wij vertrouwen erop u hiermee voldoende te hebben geïnformeerd.",
        "Met vriendelijke groet,",
        "ODE, Ann M. Pumpen em escolas públicas: um estudo. 2023. 118 f. Dissertação (Mestrado) – Olm, 2023.",
    ],
)
def test_what_is_not_a_statement_is_not_chosen(line: str) -> None:
    assert chosen(line) == []


@pytest.mark.parametrize(
    "closing",
    [
        "Thanks again, Ann",
        "Thanks again for a great weekend!!",
        "Great!",
        "Good morning.",
        "Thanks!",
        "Many thanks in advance, Ann Ode.",
        "Regards, -- Ann Ode - Pumps of the North, Tel 0 12",
    ],
)
def test_the_closing_of_a_mail_within_its_text_is_not_chosen(closing: str) -> None:
    assert chosen(f"The pump runs. {closing}") == ["The pump runs."]


@pytest.mark.parametrize(
    "line",
    [
        "For more information the club paid 40 euros.",
        "For more information, consult your doctor before you take it.",
        "For further information we need to visit the plant before 5 May.",
        "For more information, visit our open day on 12 May.",
        "For more details, see Annex B, which takes precedence.",
        "For additional information, refer to Section 5 and switch off the pump.",
        "To learn more words, read for twenty minutes each evening.",
        "To learn more about the disease, which killed 12 people, see the page.",
        "Mehr Details als im letzten Jahr finden Sie in diesem Bericht.",
        "Weitere Informationen finden Sie am 12. Mai an unserem Stand.",
        "Find more information before you see the pump; it costs 420 euros.",
        "To learn more about pumps took Ann two years.",
        "Figure 1 shows that the pump ran for nine weeks.",
        "Note: The pump house is closed on Monday and opens on Tuesday.",
        "Ann, Ben, Cem and Dora chose the pump, and the club paid for it in May.",
        "The browser of the pump house opens in May.",
        "The photo was taken by Ann in May.",
        "Home is where the pump of the club is > nobody else has one.",
        "Report and comments of the board were read.",
        "He ships them from the harbour and they are sold by Ann.",
        "This article was published in 1843 and made Ann rich.",
        "This article was first published in 1843 and caused a storm.",
        "This article also appears in Annex II and forbids the sale of boats.",
        "This article was originally published as a part of the Act, which bans tobacco.",
        "In 2024 it ran for 340 hours, in 2025 for 420, and in 2026 for 510.",
        "Return the form by Monday.",
        "Thanks to the new pump, the village has water.",
        "Present at the start were nine members of the club.",
        "If the level rises, then the pump stops by itself.",
        "Copyright law protects the plan of the pump.",
        "Thanks to Ann the pump runs again.",
        "Regards the old pump as lost, it seems.",
        "Cheers went up when the pump ran.",
        "Thanks, Ann paid for the pump.",
        "Great was the joy when the pump ran.",
        "Thanks again to Ann, the pump runs.",
        "Hello Pump is the name of the band.",
        "The club thanks Ann Ode (ann@club.example) for the plan of the pump.",
        "The pump knows `start | stop | wait` and nothing else.",
        "Open the lid before you start the pump.",
        "Regards Terror as a threat.",
        "Regards Germany as its best friend in Europe.",
        "Thanks again for the 500 euros you sent me on Monday.",
        "Thanks a lot for the loan of ten thousand euros.",
        "Vielen Dank für die zwei Häuser in der Stadt.",
        "Merci pour les 500 euros de lundi.",
        "Gracias por los dos coches del lunes.",
        "a) the club sells the old pump;",
        "(b) the club buys a new one;",
        "The tool reads the name my____id in the file of the town.",
        "Автор: Мост закрыли из-за трещины в опоре, и паром привезут к пятнице.",
        "Подписывайтесь на наш канал до 5 мая, и паром будет бесплатным.",
        "При использовании материалов завода мост не раз чинили, но ссылка на закон не помогла.",
        "14 ноября 2023, в 11:20, мост закрыли.",
        "The story continues after the advertisement was taken down in May.",
        "It ends for immediate release of the nine members.",
        "Di Pietro Bianchi si sa poco.",
        "Published in 1998, the book of the pump sold well.",
        "Published in the Olm Herald on 9 May 2024, the list names nine members.",
        "To plant a tree in the park, please visit our office before 5 May.",
        "Call Ann Ode 555-0142.",
        "Having trouble reading this letter, Ann asked Ben.",
        "Pump Hall Ltd, 1 Loom Street, was sold in May.",
        "Der Vorstand der Pumpen eG ist Frau Vik, und das Amtsgericht Olm trug sie unter GnR 123 ein.",
        "Der Vorstand: Das war bei der Pumpen GmbH lange Herr Lee allein, und niemand wusste davon.",
        "Bitte überweisen Sie der Pumpen GmbH 420 Euro, IBAN DE00 1234, BIC GENODEM1XXX, USt-IdNr. DE123456789.",
        "Pump Hall Ltd sold the registered office at 12 Quay Road and moved to Olm.",
        "Dieses Schreiben wurde maschinell erstellt und enthält einen falschen Betrag.",
        "Diese Rechnung ist automatisch erstellt worden, weil Frau Vik krank war.",
        "This letter was generated automatically and went to 12,000 wrong people.",
        "You might also like the pump of Olm, as Ann did.",
        "The reading time of the meter was 6 minutes.",
        "The reading time: 6 minutes were enough for Ann.",
        "By clicking on the pump, Ann started it.",
        "Promoted by Ann on Monday, the pump sold well.",
        "We take your privacy seriously, but the data of 400 members was lost.",
        "Do not hesitate to call 555 0142 if the pump fails.",
        "For questions on the pump, ask Ann Ode.",
        "Je vous prie de croire que la pompe est chère.",
        "Sin otro remedio, el club vendió la bomba.",
        "Restiamo a casa e la pompa è ferma.",
        "Für Fragen der Technik steht Frau Vik zur Wahl.",
        "ООО «Насос», ИНН 7700000000, в лице директора заключило договор.",
        "OLM, Norway — The minister resigned on Monday after copying large parts of her doctoral thesis in 2010.",
        "Do not hesitate to call an ambulance if a child drinks it.",
        "By clicking Delete you agree that all files are lost for good.",
        "Dans sa lettre le ministre fait croire que les sentiments ont changé.",
        "ODE, Ann wrote that the pump of Olm is old and that she sold it in 2023.",
    ],
)
def test_statements_are_not_asides(line: str) -> None:
    assert chosen(line) == [line]


@pytest.mark.parametrize(
    "line",
    [
        "ADVERTISEMENT",
        "Home > Clubs > Pumps",
        "Similar threads\nPumps in winter",
        "You might also like: Two pumps stolen in Olm",
        "Potrebbe interessarti: Due pompe rubate a Olm",
        "Lees ook: Twee pompen gestolen in Olm",
        "Leia também\nDuas bombas roubadas em Olm",
        "22/08/2024 06h41 · Atualizado há 3 horas",
        "Pagina 1 di 1",
        "di Ginevra Salis",
        "(Continua dopo la pubblicità)",
        "© RIPRODUZIONE RISERVATA",
        "FOR IMMEDIATE RELEASE",
        "- ENDS -",
        "et",
        "AND",
    ],
)
def test_what_belongs_to_the_page_is_no_heading(line: str) -> None:
    units = extraction_units(f"{PROSE}\n\n{line}\n\n{PROSE}")
    assert not any(unit.heading for unit in units)
    assert units[2].aside


@pytest.mark.parametrize(
    "block",
    [
        "Pumpenhaus Olm\nKaistraße 4 · 24999 Olm",
        "An\nDr. med. Ann Ode\nMarktplatz 3\n49196 Bad Olm",
        "CAISSE DES POMPES\n69409 LYON CEDEX 03\nTél. : 3230 12",
        "Olm, den 17.06.2026",
        "Lyon, le 12 septembre 2026",
        "Finanzamt Olm                              24999 Olm, 18.03.2026\n"
        "Nummer 12/345                              Telefon 0777 000-0, Zi. 214",
        "Насос\nООО «Насос», ИНН 7700000000, г. Олм, ул. Кирова, д. 21\nтел. (4842) 00-00-00, e-mail: a@olm.example",
        "Pump House\n12 Quay Road\nOlm OL1 4AB",
        "IN THE HIGH COURT OF OLM\nBefore:\nMRS ODE\n- - - - - - - - - - - - - - - - -",
    ],
)
def test_addresses_and_letterheads_are_neither_statements_nor_headings(block: str) -> None:
    units = extraction_units(f"{block}\n\n{PROSE}")
    assert all(unit.aside and not unit.heading for unit in units[:-2])
    assert not any(unit.aside for unit in units[-2:])


@pytest.mark.parametrize(
    "block",
    [
        "2022 Boats of the Fleet\n1500 UTC",
        "30000 Boote kamen",
        "Ann: 24999 Olm\nBen: Thanks\nAnn: Fine",
        "The pump is at\n24999 Olm. Come soon.",
    ],
)
def test_talk_and_sentences_with_a_place_are_no_addresses(block: str) -> None:
    assert not any(unit.aside for unit in extraction_units(block))


def test_links_to_other_pages_end_with_a_paragraph_or_a_heading() -> None:
    document = f"Most read\n\nPumps in winter\n\n{PROSE}\n\n- a pump of 1987\n- a well of 1912"
    told = [unit.text for unit in extraction_units(document) if not unit.aside]
    assert told == [*PROSE.replace("Monday. ", "Monday.|").split("|"), "- a pump of 1987", "- a well of 1912"]


def test_a_list_of_sources_ends_with_the_next_heading() -> None:
    found = chosen(
        "References", "The wells of Olm. Ostrand Press, 2009.", "Thanks", "Ann drew the plans of 2009."
    )
    assert found == ["Ann drew the plans of 2009."]


def test_a_list_of_contents_has_no_statements() -> None:
    assert (
        chosen(
            "Contents",
            "How the pump was chosen, paid and built in a single year by nine members and a half of the town, p. 3",
        )
        == []
    )


def test_where_nothing_else_is_there_asides_are_units_like_others() -> None:
    document = "Pump | Litres\nA 12 | 300"
    assert [unit.text for unit in extraction_units(document)] == document.split("\n")


def words(count: int, word: str = "word") -> str:
    return " ".join([word] * count)


@pytest.mark.parametrize(
    ("line", "is_aside"),
    [
        (f"{words(10)} | {words(10)}", True),  # cells of ten words
        (f"{words(10)} | {words(11)}", False),
        ("boats | `a | b | c`", True),
        ("one\ttwo", True),
        ("one   two   three", True),
        ("one   two", False),
        ("boats | oars\nand sails", False),
        ("12 boats 13", True),  # two of three are numbers
        ("12 boats", False),
        ("12 13 14 boats oars", True),  # three of five
        ("12 boats oars 14", False),
        ("12 boats 13.", False),
    ],
)
def test_a_row_has_short_cells_or_mostly_numbers(line: str, is_aside: bool) -> None:
    assert Asides().has(line) == is_aside


@pytest.mark.parametrize(
    ("line", "is_aside"),
    [
        ("Posted: Thursday", True),
        ("Mooring: Thursday.", False),
        ("- decided: Thursday", False),
        ("Beschluss: Donnerstag", False),
        ("Mooring:", False),
        (f"Mooring: {words(9)}", True),
        (f"Mooring: {words(10)}", False),
        (f"Subject: {words(14)}", True),
        (f"Subject: {words(15)}", False),
        (f"{'p' * 40}: Thursday", True),
        (f"{'p' * 41}: Thursday", False),
    ],
)
def test_a_label_with_its_value_has_ten_words_and_one_of_a_mail_fifteen(line: str, is_aside: bool) -> None:
    assert Asides().has(line) == is_aside


@pytest.mark.parametrize(
    ("line", "is_aside"),
    [
        ("The pier ..... 12", True),
        ("The pier .. 12", False),
        ("The pier …… 12", True),
        ("The pier 3 The boats 9 The oars 9", True),
        ("The pier 3 The boats 9 and the oars", False),
        ("The pier 3 The boats 9 The oars 8", False),
        ("The pier 3 The boats 9 The oars 12.", False),
        ("The pier. 3 The boats 9 The oars 12", False),
    ],
)
def test_contents_have_dots_or_three_growing_numbers_of_pages(line: str, is_aside: bool) -> None:
    assert Asides().has(line) == is_aside


@pytest.mark.parametrize(
    ("line", "is_aside"),
    [
        ("Ingrid Solheim, Tom Jones, Ann Smith and Bob Moen", True),
        ("Ingrid Solheim, Tom Jones and Ann Smith", False),
        ("Councillors: Ingrid Solheim, Tom Jones, Ann Smith, Bob Moen", True),
        ("Ingrid of the Moen, Tom Jones, Ann Smith, Bob Moen", True),
        ("Ingrid of the old Moen, Tom Jones, Ann Smith, Bob Moen", False),
        ("Boats, Oars, Sails, tents", True),  # three of four words
        ("Boats, Oars, sails, tents", False),
        ("an, of, to, in", False),
    ],
)
def test_names_are_four_short_parts_of_which_three_quarters_have_capitals(line: str, is_aside: bool) -> None:
    assert Asides().has(line) == is_aside


@pytest.mark.parametrize(
    ("line", "is_aside"),
    [
        ("please write to ann@example.org or come to us", True),
        ("please do write to ann@example.org or come to us", False),
        ("write to ann@example.org.", False),
        ("call +47 123 45 67", True),
        ("P.O. Box 12", True),
    ],
)
def test_a_contact_has_eight_words_and_no_end_mark(line: str, is_aside: bool) -> None:
    assert Asides().has(line) == is_aside


def test_sources_are_asides_until_a_heading_that_is_none_of_them() -> None:
    asides = Asides()
    source, other = "A. Lund, The pier, 1998.", "He rows."
    assert not asides.has(source)
    asides.after("References", is_heading=True)
    assert asides.has(source)
    assert not asides.has(other)
    asides.after("A. Moen, The boats, 2001", is_heading=True)
    assert asides.has(source)
    asides.after("He rows.", is_heading=False)
    assert asides.has(source)
    asides.after("The Boats", is_heading=True)
    assert not asides.has(source)


@pytest.mark.parametrize("heading", ["Contents", "1. Contents", "Contents:", "Contents\nThe pier"])
def test_lines_below_contents_without_an_end_mark_are_asides(heading: str) -> None:
    asides = Asides()
    asides.after(heading, is_heading=True)
    assert asides.has("The pier")
    assert not asides.has("The pier is old.")


def test_a_line_of_2000_characters_may_be_an_aside_and_a_longer_one_is_none() -> None:
    asides = Asides()
    asides.after("References", is_heading=True)
    line = "1998 ".ljust(2000, "x")
    assert asides.has(line)
    assert not asides.has(f"{line}x")


@pytest.mark.parametrize(
    "text",
    [
        "- Vacate the old office in Hamburg by June\n- Send all parcels to the new office, 20095 Hamburg\n- Paint it",
        "In the High Court the claim failed because nobody had paid the fee",
        "The bank has two offers. Credit: up to 5,000 euros at 4 percent",
        "Click File > Export > PDF to save the invoice",
        "A person found this dog near the river",
        "Die Stadt schützt die Umwelt und lässt Formulare nicht mehr drucken.",
        "Consider the environment before printing new banknotes, the bank was told.",
        "See also: the report of the auditors says that two thirds of the funds are missing",
        "Reviewed in the light of the audit on 12 May 2024",
    ],
)
def test_a_statement_that_is_like_the_furniture_of_a_page_stays(text: str) -> None:
    units = extraction_units(f"The boat is old and leaks a lot.\n\n{text}\n\nIt was sold to Ann in June.")
    assert not any(unit.aside for unit in units)
