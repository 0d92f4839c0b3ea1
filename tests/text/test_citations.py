"""References that a summary leaves out, and those that a sentence needs."""

from time import perf_counter

import pytest

from precis_text.citations import Citations
from precis_text.units import extraction_units

CITING = "(Gray, 1978) (Lee et al., 2001; Kim and Park, 2004a) (Ray, 1999) (Wu & Li, 2011) (Po, 2010)"


def test_marks_of_quoted_mail_go_where_indented_lines_were_joined() -> None:
    mail = "Subject: Keys    > Can we say if   > 1) the key is lost   > or 2) the door is open   > when a > b?   > Ann"
    assert Citations.of(mail).left_out(
        "> Can we say if > 1) the key is lost > or so, when a > b or 3 > 2?"
    ) == ("Can we say if 1) the key is lost or so, when a > b or 3 > 2?")
    menus = f"{mail}\nOpen File > Options, if cost > income."
    shown = "Open File > Options, if cost > income."
    assert (
        Citations.of(menus).left_out(f"> {shown} > Can we say if > the door is open?")
        == f"{shown} Can we say if the door is open?"
    )
    few = mail.replace("   > Ann", "")
    assert "> 1)" in Citations.of(few).left_out("Can we say if > 1) the key is lost?")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("The rate rose [12, 13]. It fell [7].", "The rate rose. It fell."),
        ("The rate rose [3–5] [9], and fell.", "The rate rose, and fell."),
        (
            "It rose in towns [1]–[11]. It fell [12],[13],[14]–[24], and stayed.",
            "It rose in towns. It fell, and stayed.",
        ),
        ("He proposed it (see Newsletter 234) in May (see also chapters 3 and 4).", "He proposed it in May."),
        ("As we have seen above, mice sleep.", "Mice sleep."),
        ("Both were found (Fig. 2A).", "Both were found."),
        ("Both were found (Figs. 2A–C and 12, left panel; Table S3).", "Both were found."),
        ("Both were found (see Section 3.2 for details).", "Both were found."),
        ("Both were kept (S3A and S3C Fig).", "Both were kept."),
        ("They were found (see Supplementary Table S1), which helps.", "They were found, which helps."),
        ("Der Wert stieg (siehe Abb. 4).", "Der Wert stieg."),
        ("He moved to Dulwich.[17]", "He moved to Dulwich."),
        ("He lived in Dulwich,[17][b] and read.", "He lived in Dulwich, and read."),
        ("Mice sleep (Gray, 1978).", "Mice sleep."),
        ("As previously discussed in the next section, it rose.", "It rose."),
        ("As discussed above, it rose.", "It rose."),
        ("As shown in the previous section, mice sleep.", "Mice sleep."),
        ("Mice sleep (Lee et al.; Kim and Park; Ray et al.) here (Po et al.).", "Mice sleep here."),
        ("Mice sleep <cit> . They rest <cit>, <cit>.", "Mice sleep. They rest."),
        ("Mice sleep @xcite , and rest <cit>-<cit>.", "Mice sleep, and rest."),
        ("It rose (see ) and fell (e.g.,).", "It rose and fell."),
        (
            "It depends on the phase (see and ) of the wave (e.g., , and ).",
            "It depends on the phase of the wave.",
        ),
        ("It was little studied (Du Pont et al.).", "It was little studied."),
        ("It has been confirmed ().", "It has been confirmed."),
        ("See [the guide](https://example.org/a_(b)) of [Ann](mailto:a@b.cd).", "See the guide of Ann."),
        (
            "Press (or) and (and) or a comma (,) to end, and a point (;).",
            "Press (or) and (and) or a comma (,) to end, and a point (;).",
        ),
        ("It helps to build a ] house ( ) here.", "It helps to build a house here."),
        ("Mice sleep (e.g., Lee et al., 2001; Kim and Park, 2004a) at night.", "Mice sleep at night."),
        ("It is a trap (see below for definition).", "It is a trap."),
        ("Please note that the trap is shut.", "The trap is shut."),
        ("It should be noted that mice sleep.", "Mice sleep."),
        ("We would like to inform you that our traps are sold.", "Our traps are sold."),
        ("Interestingly, mice sleep.", "Mice sleep."),
        ("Cabe destacar que los ratones duermen.", "Los ratones duermen."),
        ("Il est à noter que la souris dort.", "La souris dort."),
        ("Please note that down.", "Please note that down."),
        ("Note that was left there names the thief.", "Note that was left there names the thief."),
        ("Notably, p53 is lost in mice.", "Notably, p53 is lost in mice."),
        ("Interestingly, pH drops in mice.", "Interestingly, pH drops in mice."),
        ("Importantly, a mouse sleeps.", "A mouse sleeps."),
        (
            "Note that day, and remember that the trap is shut.",
            "Note that day, and remember that the trap is shut.",
        ),
    ],
)
def test_references_are_left_out(text: str, shown: str) -> None:
    assert Citations.of(CITING).left_out(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("SUGGESTION 69.1: Sell the wall of Ropsten.", "SUGGESTION: Sell the wall of Ropsten."),
        ("Action item 3: Ann sells the wall.", "Action: Ann sells the wall."),
        ("Paper to note 2: the wall was sold.", "the wall was sold."),
        ("Agenda item 4 – the wall is sold.", "the wall is sold."),
        *[
            (text, text)
            for text in (
                "Step 2: Sell the wall.",
                "Chapter 3: The wall of Ann.",
                "Item 4 is about the wall.",
                "Action plan 3: two of four walls are sold.",
                "The decision 69.1: it is sold.",
                "Resolution 242:",
                "Resolution 242: Israel must leave.",
                "Motion 312: The bill fell.",
                "Resolution 12: The bill fell.",
                "Action 12 - 14 people came.",
                "Item 5 - 10 were lost.",
                "Item 512: The wall is sold.",
            )
        ],
    ],
)
def test_the_number_of_an_item_of_an_agenda_goes(text: str, shown: str) -> None:
    assert Citations.of(text).left_out(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "See [12].",
        "As we saw, mice sleep.",
        "Mice sleep, as shown in <cit>.",
        "The tags <cite> and <ref> hold <dig>.",
        "The method of [12] is fast.",
        "Mice sleep, as in (Gray, 1978).",
        "It rose (Fig. 2d, p = 0.01).",
        "A (figurative) word, and rooms (tables of wood).",
        "x[1] is the second value.",
        "[12]",
        "He moved there (Paris 1924 to 1926).",
        "He moved there (Paris and Rome), and ran f () again.",
        "The call f() returns [] and x >> 2, if a > b.",
        "As discussed, above all the walls",
        "Clause [3] does not apply.",
        "Call f[0](x), rows[a](b) or [this](that).",
        "Click ![Save](https://example.org/save.png) to keep it.",
        "In step [3](https://example.org/3) it stops.",
        "Write `[text](https://example.org)` for a link.",
        "Set f[x](https:a) to zero.",
        "Artikel [3] gilt nicht.",
        "He said [n]o man is free.",
        "He sold [a] wall.",
        "It is free (Table 2, unless taxed).",
        "It is free (see Appendix B, which applies only to minors).",
        "It was said to rise (Fig. 3 shows that it did not).",
        "It was said to rise (Fig. 3, not Fig. 4).",
        "It rose (see below, but only at night).",
    ],
)
def test_what_a_sentence_needs_and_what_refers_to_nothing_stays(text: str) -> None:
    assert Citations.of(CITING).left_out(text) == text


def test_one_name_with_a_year_is_no_reference() -> None:
    text = "They won the cup (Paris, 1924)."
    assert Citations.of(text).left_out(text) == text


def test_numbers_behind_words_are_references_where_there_are_several() -> None:
    article = "Dulwich[17] and Harrow[2] and Cambridge[3] and Greece[4] and London[5]"
    assert Citations.of(article).left_out(article) == "Dulwich and Harrow and Cambridge and Greece and London"
    assert Citations.of("The value is rows[3].").left_out("The value is rows[3].") == "The value is rows[3]."


def test_marks_of_quoted_mail_go_where_lines_were_joined() -> None:
    few = "> > Is it late? > > Yes. > > So > > it is."
    assert Citations.of(few).left_out(few) == few
    five = f"{few} > > Bye."
    assert Citations.of(five).left_out(five) == "Is it late? Yes. So it is. Bye."
    mail = "> > Is it late? > > > Yes. > > >No, a summary of >the day. > > So > > it is. > > Bye."
    assert Citations.of(mail).left_out(mail) == "Is it late? Yes. No, a summary of the day. So it is. Bye."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            'Name: "Ann Lee" Email: "a@b.org" To: <c@d.org> Subject: "Keys" Can I get a key?',
            "Can I get a key?",
        ),
        ('</s>From: "Ann Lee" <a@b.org> Subject: "Re: Keys" Yes, you can.', "Yes, you can."),
        ('Date: 5 May 1999 To: a@b.org, c@d.org Subject: "Keys" Here are the keys.', "Here are the keys."),
        ("Subject: Keys of May From: a@b.org Here are the keys.", "Here are the keys."),
        (
            'Thanks again, Ann </s>Name: "Ben" Email: "b@c.org" Subject: "Re: Keys" Here they are.',
            "Here they are.",
        ),
        ("Thanks again, Ann </s> for the keys.", "Thanks again, Ann </s> for the keys."),
        ("> We have no keys left.", "We have no keys left."),
        ("<1999.12@b.org> > We have no keys left.", "We have no keys left."),
        ("*New keys for the quay.", "New keys for the quay."),
        ("Keys for the quay._", "Keys for the quay."),
        ("_Keys for the quay._", "Keys for the quay."),
        ("*Keys for the quay*", "Keys for the quay"),
        ("_keys_", "_keys_"),
        ("Date: Monday is the last day.", "Date: Monday is the last day."),
        ("From: here To: there", "From: here To: there"),
        ("From: Mon To: Fri The office is open.", "From: Mon To: Fri The office is open."),
        ("To: Ann Subject: Cuts in May We must save.", "To: Ann Subject: Cuts in May We must save."),
        ("name: build from: scratch uses the image.", "name: build from: scratch uses the image."),
        ("_id is the key, *args the rest.", "_id is the key, *args the rest."),
        ("_id is the key of each row.", "_id is the key of each row."),
        ("*args collects the rest.", "*args collects the rest."),
        ("> 5 keys are missing.", "> 5 keys are missing."),
        ("*New* keys, *old* locks.", "*New* keys, *old* locks."),
        ("* A key of the quay.", "* A key of the quay."),
        ("The file is called key_", "The file is called key_"),
    ],
)
def test_the_head_of_a_mail_and_lone_marks_go(text: str, shown: str) -> None:
    assert Citations.of(text).left_out(text) == shown


def test_units_are_without_references_and_keep_their_places() -> None:
    document = "The wall moved by eleven centimetres [3]. The quay is safe (Fig. 2)."
    units = extraction_units(document)
    assert [unit.text for unit in units] == ["The wall moved by eleven centimetres.", "The quay is safe."]
    assert [document[unit.start : unit.stop] for unit in units] == [
        "The wall moved by eleven centimetres [3].",
        "The quay is safe (Fig. 2).",
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Hi all, The wall is sold.", "The wall is sold."),
        ("Hi again Wall-builders team, I sold it.", "I sold it."),
        ("Hi, Here is the wall.", "Here is the wall."),
        ("Hi all, that was it.", "That was it."),
        ("Hi, but it is sold.", "But it is sold."),
        ("Dear Ann, The wall is sold.", "The wall is sold."),
        ("Hello everybody! We sold it.", "We sold it."),
        ("Dear Ann and Bob, We sold it.", "We sold it."),
        *[
            (text, text)
            for text in (
                "Hello, World is a program.",
                "Hi fives, that was it.",
                "Hi we cannot come, Tom is ill.",
                "Hey Ann is fired, Bob said so on Monday.",
                "Hi I will not come, Tom does.",
                "Dear Ann, Bob and Carl, We lost the case.",
                "Dear Ann, Bob, We lost the case.",
                "Dear walls are sold, We think.",
                "High walls, Ann said.",
                "They said Hi all, The wall is sold.",
            )
        ],
    ],
)
def test_a_greeting_of_a_mail_goes(text: str, shown: str) -> None:
    assert Citations.of(f"{text}\n\nRegards, Ben").left_out(text) == shown
    assert Citations.of(text).left_out(text) == text


def test_a_long_text_behind_a_mark_of_emphasis_takes_no_time() -> None:
    start = perf_counter()
    Citations.of("").left_out(f"*a {'b ' * 40_000}")
    assert perf_counter() - start < 1
