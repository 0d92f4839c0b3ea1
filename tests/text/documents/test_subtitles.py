"""Captions of every kind of file: what is said, once, with its time."""

import pytest

from precis_text.documents.cues import Cue, cues_of
from precis_text.documents.passages import Passages
from precis_text.documents.reader import read_content
from precis_text.errors import UserError
from precis_text.units import extraction_units

SRT = "1\n00:00:00,000 --> 00:00:02,000\nDas Fest f\u00e4llt aus.\n\n2\n00:01:00,500 --> 00:01:02,000\nEs regnet.\n"


def times(found: Passages) -> list[str]:
    return [place.time for place in found.places]


def test_western_european_is_read_and_noted() -> None:
    found = read_content(SRT.encode("cp1252"), name="a.srt")
    assert found.text == "Das Fest f\u00e4llt aus.\nEs regnet."
    assert found.notes == ["not UTF-8; read as Western European (cp1252)"]


@pytest.mark.parametrize(
    ("name", "charset"),
    [("a.srt", "utf-8"), ("a.srt", "utf-16"), ("a.txt", "utf-8"), ("a.txt", "utf-8-sig"), ("", "utf-8")],
)
def test_captions_are_recognized_by_name_or_first_cue(name: str, charset: str) -> None:
    found = read_content(SRT.encode(charset), name=name)
    assert found.text == "Das Fest f\u00e4llt aus.\nEs regnet."
    assert not found.notes


@pytest.mark.parametrize("charset", ["utf-16", "utf-16-be"])
def test_a_text_of_windows_says_that_it_is_utf_16(charset: str) -> None:
    mark = "\ufeff" if charset == "utf-16-be" else ""
    found = read_content((mark + "Das Fest f\u00e4llt aus.\r\nEs regnet.").encode(charset), name="a.txt")
    assert found.text == "Das Fest f\u00e4llt aus.\nEs regnet."
    with pytest.raises(UserError, match="begins as UTF-16 but is damaged at byte 5"):
        read_content(b"\xff\xfea\0b", name="a.txt")
    with pytest.raises(UserError, match="begins as UTF-16 but contains NUL"):
        read_content(b"\xff\xfea\0\0\0", name="a.txt")


def test_times_of_one_digit_and_without_milliseconds() -> None:
    text = "1\n0:3:0,5 --> 0:3:5,0\nAnn sings.\n\n2\n0:4:1 --> 0:4:2\nBob pays.\n"
    found = read_content(text.encode(), name="a.srt")
    assert found.text == "Ann sings.\nBob pays."
    assert times(found) == ["0:03:00", "0:04:01"]


def cues(*texts: str) -> bytes:
    lines = [f"00:{number:02}.000 --> 00:{number + 1:02}.000\n{text}\n" for number, text in enumerate(texts)]
    return "\n".join(["WEBVTT\n", *lines]).encode()


def test_growing_lines_are_written_once() -> None:
    grown = cues(
        "The board",
        "The board met",
        "The board met on",
        "Monday. It",
        "Monday. It agreed.",
        "Monday. It agreed.",
    )
    assert read_content(grown).text == "The board met on Monday. It agreed."
    two = cues("The board met", "The board met\non", "The board met\non Monday", "on Monday\nand agreed.")
    assert read_content(two).text == "The board met on Monday and agreed."


def test_a_line_that_happens_to_begin_like_the_last_one_is_kept_whole() -> None:
    found = read_content(cues("No", "No one came.", "It rained.", "Ann paid.", "Bob sang.", "They left."))
    assert found.text.startswith("No No one came.")


def test_speech_without_full_stops_whose_clauses_are_not_known_is_cut_at_breaths() -> None:
    def cue(begin: float, end: float, text: str) -> str:
        return f"00:{begin:06.3f} --> 00:{end:06.3f}\n{text}\n"

    one, two, three, four, five = (f"così il consiglio ha parlato del muro di {n} e basta" for n in "abcde")
    spoken = cue(0, 4, one), cue(5.5, 9, two), cue(9, 13, three), cue(13, 17, four), cue(17, 21, five)
    found = read_content("\n".join(["WEBVTT\n", *spoken]).encode())
    assert found.text.split("\n\n") == [one, f"{two} {three} {four}", five]
    units = extraction_units(found.text)
    assert len(units) == 3
    assert not any(unit.heading for unit in units)


CLAUSES = (
    "so the board met at the quay and it talked of the crane in the north and then it said that the wheel is old "
    "because of the frost and the town has to pay for it so the people are not glad but the crane lifts grain for all"
)


@pytest.mark.parametrize("name", ["a.srt", "a.txt"])
def test_speech_without_full_stops_is_divided_where_clauses_begin_not_where_cues_end(name: str) -> None:
    words = CLAUSES.split()
    said = [" ".join(words[at : at + 8]) for at in range(0, len(words), 8)]
    cues = [f"{n + 1}\n00:00:{n:02},000 --> 00:00:{n + 1:02},000\n{text}\n" for n, text in enumerate(said)]
    pane = (
        "\n".join(cues) if name == "a.srt" else "\n".join(f"0:{n:02}\n{text}" for n, text in enumerate(said))
    )
    found = read_content(pane.encode(), name=name)
    units = [unit.text for unit in extraction_units(found.text)]
    assert " ".join(units) == CLAUSES
    assert len(units) > 1
    assert {unit.split()[0] for unit in units} <= {"so", "and", "but"}
    assert times(found) == [f"0:00:{n:02}" if name == "a.srt" else f"0:{n:02}" for n in range(len(said))]


def test_sbv_of_youtube() -> None:
    text = "0:00:00.599,0:00:04.160\nAnn Lee: Tea and cake.\n\n0:00:09.160,0:00:10.770\nBob: No.\n"
    found = read_content(text.encode(), name="a.sbv")
    assert found.text == "Ann Lee: Tea and cake.\nBob: No."
    assert times(found) == ["0:00:00", "0:00:09"]


def test_ass_gives_the_dialogue_without_its_commands() -> None:
    text = (
        "[Script Info]\nTitle: x\n\n[V4+ Styles]\nFormat: Name\nStyle: Default\n\n[Events]\n"
        "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
        "Comment: 0,0:00:00.00,0:00:01.00,Default,,0,0,0,,not shown\n"
        "Dialogue: 0,0:00:01.00,0:00:02.00,Default,Ann,0,0,0,,{\\i1}Tea, and\\Ncake.{\\i0}\n"
        "Dialogue: 0,0:00:02.00,0:00:03.00,Default,,0,0,0,,{\\p1}m 0 0 l 9 9{\\p0}\n"
        "Dialogue: 0,0:01:02.50,0:01:03.00,Default,Bob,0,0,0,,No.\n"
    )
    found = read_content(text.encode())
    assert found.text == "Ann: Tea, and cake.\nBob: No."
    assert times(found) == ["0:00:01", "0:01:02"]


def test_the_title_of_ttml_is_named_as_left_out() -> None:
    text = (
        '<tt xmlns="http://www.w3.org/ns/ttml" xmlns:ttm="http://www.w3.org/ns/ttml#metadata"><head><metadata>'
        "<ttm:title>The Ferry</ttm:title></metadata></head><body><div>"
        '<p begin="1s" end="2s">Ann sings.</p></div></body></tt>'
    )
    found = read_content(text.encode(), name="a.ttml")
    assert (found.text, found.notes) == ("Ann sings.", ["title and copyright left out"])
    assert read_content(text.replace("The Ferry", "").encode(), name="a.ttml").notes == []


def test_ttml_with_clocks_offsets_and_frames() -> None:
    head = (
        '<?xml version="1.0"?><tt xmlns="http://www.w3.org/ns/ttml" xmlns:ttm="http://www.w3.org/ns/ttml#metadata" '
        'xmlns:ttp="http://www.w3.org/ns/ttml#parameter" ttp:frameRate="25"><head><metadata>'
        '<ttm:agent xml:id="a1"><ttm:name>Ann</ttm:name></ttm:agent></metadata></head><body><div>'
    )
    text = (
        f'{head}<p begin="1.5s" end="3s" ttm:agent="a1">Tea <span>and</span><br/>cake.</p>'
        '<p begin="00:01:02:10" dur="2s">It rains.</p><p begin="00:02:00.250" end="00:02:01">Bob &amp; Cem left.</p>'
        "</div></body></tt>"
    )
    found = read_content(text.encode(), name="a.ttml")
    assert found.text == "Ann: Tea and cake.\nIt rains.\nBob & Cem left."
    assert times(found) == ["0:00:01", "0:01:02", "0:02:00"]
    with pytest.raises(UserError, match=r"is damaged XML .*; export the captions again"):
        read_content(text[:-9].encode(), name="a.ttml")
    with pytest.raises(UserError, match="has a cue at 'soon', which is not a time"):
        read_content(text.replace("1.5s", "soon").encode(), name="a.ttml")


def test_captions_without_cues_are_refused() -> None:
    for name in ("a.ass", "a.ttml", "a.sbv"):
        content = b"<tt/>" if name == "a.ttml" else b"[Events]\nAnn sings."
        with pytest.raises(UserError, match="lacks cues"):
            read_content(content, name=name)


@pytest.mark.parametrize(
    ("text", "codec", "note"),
    [
        ("Příliš žluťoučký kůň běží k přístavu.", "cp1250", "Central European (cp1250)"),
        ("Łódź płynie wśród trzcin, mówi rada.", "cp1250", "Central European (cp1250)"),
        ("Совет одобрил новый причал.", "cp1251", "Cyrillic (cp1251)"),
        ("Το συμβούλιο ενέκρινε την αποβάθρα.", "cp1253", "Greek (cp1253)"),
        ("İskele için şehir kurulu toplandı.", "cp1254", "Turkish (cp1254)"),
        ("המועצה אישרה את הרציף", "cp1255", "Hebrew (cp1255)"),
        ("وافق مجلس الميناء على الرصيف", "cp1256", "Arabic (cp1256)"),
        ("港口委员会今天批准了新的码头，它将开放给所有人使用。", "gb18030", "simplified Chinese (gb18030)"),
        ("港口委員會今天批准了新的碼頭，它會開放給所有的人。", "big5", "traditional Chinese (big5)"),
        ("港の委員会は今日、新しい岸壁を承認しました。", "cp932", "Japanese (cp932)"),
        ("港の委員会は今日、新しい岸壁を承認しました。", "euc_jp", "Japanese (euc_jp)"),
        ("항만 위원회는 오늘 새 부두를 승인했습니다.", "cp949", "Korean (cp949)"),
        ("คณะกรรมการอนุมัติท่าเรือใหม่วันนี้", "cp874", "Thai (cp874)"),
        ("Совет одобрил новый причал.", "koi8-r", "Cyrillic (koi8-r)"),
        ("L’été, la décision était très attendue.", "cp1252", "Western European (cp1252)"),
        ("¿Mañana? El año que viene también.", "cp1252", "Western European (cp1252)"),
    ],
)
def test_an_old_character_set_is_known_by_its_alphabet(text: str, codec: str, note: str) -> None:
    srt = f"1\n00:00:01,000 --> 00:00:02,000\n{text}\n"
    found = read_content(srt.encode(codec), name="a.srt")
    assert found.text == text
    assert found.notes == [f"not UTF-8; read as {note}"]


def test_blank_lines_in_a_cue_of_subrip_lose_nothing() -> None:
    srt = (
        "1\n00:00:00,000 --> 00:00:02,000\nThe mill turns.\n\nIn 1931\n\n2\n"
        "00:00:02,500 --> 00:00:04,000\nit burned.\n3\n00:00:04,000 --> 00:00:05,000\nIt stands.\n"
    )
    assert read_content(srt.encode(), name="a.srt").text == "The mill turns. In 1931 it burned. It stands."


def test_two_voices_on_one_line_are_two_speakers() -> None:
    vtt = "WEBVTT\n\n00:01.000 --> 00:03.000\n<v Ann>It is dear.</v><v.loud Ben>It is not.</v>\n"
    assert read_content(vtt.encode(), name="a.vtt").text == "Ann: It is dear.\nBen: It is not."


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.sub", "{1}{1}25.000\n{25}{100}It turns,|it grinds.\n{2525}{2600}{y:i}It stops.\n"),
        (
            "a.sub",
            "[SUBTITLE]\n00:00:01.00,00:00:04.00\nIt turns,[br]it grinds.\n\n00:01:41.00,00:01:44.00\nIt stops.\n",
        ),
        ("a.mpl", "[10][40]It turns,|/it grinds.\n[1010][1040]It stops.\n"),
        ("a.lrc", "[ti:GONE]\n[01:41.00]It stops.\n[00:01.00][00:45.10]It turns, <00:02.50>it grinds.\n"),
        (
            "a.smi",
            "<SAMI><HEAD>GONE</HEAD><BODY><SYNC Start=1000><P>It turns,<br>it grinds.<SYNC Start=4000><P>&nbsp;"
            "<SYNC Start=101000><P Class=E>It stops.</BODY></SAMI>",
        ),
        (
            "a.srt",
            "1\n00:00:01.000 -> 00:00:04.000\nIt turns,\nit grinds.\n\n2\n00:01:41,000 → 00:01:44,000\nIt stops.\n",
        ),
        (
            "a.xml",
            "<?xml version='1.0' encoding='utf-8'?><transcript><text start='1' dur='3'>It turns, it grinds.</text>"
            "<text start='101'>It stops.</text></transcript>",
        ),
        (
            "a.ttml",
            "<timedtext><body><p t='1000' d='3000'><s>It turns,</s><s> it grinds.</s></p><p t='101000'>It stops.</p>"
            "</body></timedtext>",
        ),
    ],
)
def test_older_formats_give_their_cues_with_times(name: str, content: str) -> None:
    found = read_content(content.encode(), name=name)
    assert found.text == "It turns, it grinds.\nIt stops."
    assert times(found) == ["0:00:01", "0:01:41"]


def test_captions_in_xml_are_read_in_their_encoding_and_keep_words_outside_paragraphs() -> None:
    text = "<?xml version='1.0' encoding='{}'?><tt><body><div><p begin='1s'>Die Mühle.</p>Sie läuft.</div></body></tt>"
    for name in ("iso-8859-1", "utf-16"):
        assert read_content(text.format(name).encode(name), name="a.ttml").text == "Die Mühle. Sie läuft."


def test_signs_of_comparison_and_readings_above_the_text_are_no_tags() -> None:
    assert (
        read_content(cues("It is <i>a < b</i> and c > d, I <3 it."), name="a.vtt").text
        == "It is a < b and c > d, I <3 it."
    )
    assert (
        read_content(cues("<ruby>水車<rt>すいしゃ</rt></ruby>が回る。"), name="a.vtt").text == "水車が回る。"
    )


ASS = (
    "[Script Info]\nDialogue: 0,0:00:00.00,0:00:01.00,,,0,0,0,,no event\n[Events]\n"
    "Format: Layer, Start, End, Style, Actor, MarginL, MarginR, MarginV, Effect, Text\n"
    "Dialogue: 0,1:01:01.50,1:01:04.25,,Ann,0,0,0,,It turns,\\hit\\Ngrinds, and stops.\n"
    "Dialogue: 0,0:00:01.00,soon,,,0,0,0,,has no end\nDialogue: 0,soon,0:00:01.00,,,0,0,0,,has no begin\n"
    "Dialogue: 0,0:00:01.00\n[Fonts]\nDialogue: 0,0:00:00.00,0:00:01.00,,,0,0,0,,no event\n"
)
TTML = '<tt xmlns:p="parameter" p:frameRate="25" p:tickRate="1000"><body>{}</body></tt>'


@pytest.mark.parametrize(
    ("text", "begins", "ends", "lines"),
    [
        ("1\n01:01:01,500 --> 01:01:04,250\nIt turns.", 3661.5, 3664.25, ["It turns."]),
        ("1\n1:1,5 --> 1:4\nIt turns.\nIt stops.\n", 61.5, 64.0, ["It turns.", "It stops."]),
        ("WEBVTT\n\n01:01.500 --> 01:04.250 align:left\n \nIt turns.\n\nNOTE of Ann", 61.5, 64.25, ["It turns."]),
        ("WEBVTT\n\n01:01.500 --> 01:04.250\nIt turns.", 61.5, 64.25, ["It turns."]),
        ("WEBVTT\n\n01:01.500 --> 01:04.250\n  \n  ", 61.5, 64.25, []),
        ("WEBVTT\n\n01:01.500 --> 01:04.250", 61.5, 64.25, []),
        (ASS, 3661.5, 3664.25, ["It turns, it", "grinds, and stops."]),
        (TTML.format("<p begin='01:01:01.5' end='01:01:04.25'>&amp;amp;</p>"), 3661.5, 3664.25, ["&amp;"]),
        (TTML.format("<p begin='00:00:01:05' dur='2s'>It turns.</p>"), 1.2, 3.2, ["It turns."]),
        (TTML.format("<p begin='50f' dur='2500t'>It turns.</p>"), 2.0, 4.5, ["It turns."]),
        (TTML.format("<p begin='0.5m' end='1h'>It turns.</p>"), 30.0, 3600.0, ["It turns."]),
        (TTML.format("<p begin='1500ms' end='2' dur='9s'>It turns.</p>"), 1.5, 2.0, ["It turns."]),
        ("<tt><body><p begin='45f' end='90t'>It turns.</p></body></tt>", 1.5, 90.0, ["It turns."]),
        ("<transcript><text start='1.5' dur='2'>It&amp;#39;s</text></transcript>", 1.5, 3.5, ["It's"]),
        ("<timedtext><body><p t='1500' d='2000'>It turns.</p></body></timedtext>", 1.5, 3.5, ["It turns."]),
        ("{25}{50}{y:i}It turns,|/it grinds.", 25 / 23.976, 50 / 23.976, ["It turns,", "it grinds."]),
        ("{1}{1}25\n{25}{50}It turns.", 1.0, 2.0, ["It turns."]),
        ("{1}{1}12,5\n{25}{}It turns.", 2.0, 2.0, ["It turns."]),
        ("{25}{50}25|30", 25 / 23.976, 50 / 23.976, ["25", "30"]),
        ("[15][35]It turns,|/it grinds.", 1.5, 3.5, ["It turns,", "it grinds."]),
        ("[15][]It turns.", 1.5, 1.5, ["It turns."]),
        ("[ti:GONE]\n[01:01.50]It turns.", 61.5, 66.5, ["It turns."]),
        ("<SAMI><!-- x --><SYNC Start=1500><P>It turns,<br>it&nbsp;grinds.", 1.5, 1.5, ["It turns,", "it grinds."]),
    ],
)  # fmt: skip
def test_a_cue_has_its_begin_its_end_and_its_lines(
    text: str, begins: float, ends: float, lines: list[str]
) -> None:
    (cue,) = cues_of(text)
    assert (cue.begins, cue.ends) == pytest.approx((begins, ends), abs=1e-9)
    assert [line for _, line in cue.lines] == lines


def test_the_line_of_a_song_ends_at_the_next_one_but_lasts_five_seconds_at_most() -> None:
    found = cues_of("[00:20.00]It stops.\n[00:01.00][00:30.00]It turns.\n[00:04.00]It grinds.\n")
    assert found == [
        Cue(1.0, 4.0, (("", "It turns."),)),
        Cue(4.0, 9.0, (("", "It grinds."),)),
        Cue(20.0, 25.0, (("", "It stops."),)),
    ]


def test_a_cue_of_sami_ends_where_the_next_begins() -> None:
    found = cues_of("<sami><SYNC Start='1000'><P>It turns.<sync class=a start=\"2500\"><P>It stops.")
    assert [(cue.begins, cue.ends) for cue in found] == [(1.0, 2.5), (2.5, 2.5)]


def spoken(*said: tuple[float, float, str]) -> str:
    lines = [f"00:{begins:06.3f} --> 00:{ends:06.3f}\n{text}\n" for begins, ends, text in said]
    return read_content("\n".join(["WEBVTT\n", *lines]).encode()).text


@pytest.mark.parametrize(
    ("words", "pause", "cut"),
    [
        (7, 1.0, False),
        (8, 1.0, True),
        (8, 0.701, True),
        (8, 0.7, False),
        (23, 0.5, False),
        (24, 0.0, True),
        (7, 5.0, False),
    ],
)
def test_speech_without_full_stops_is_cut_at_a_breath_after_8_words_or_after_24(
    words: int, pause: float, cut: bool
) -> None:
    first, second = " ".join(["so"] * words), "and so on"
    found = spoken((0.0, 0.0, first), (pause, pause, second))
    assert found.split("\n\n") == ([first, second] if cut else [found])
    assert found.split() == f"{first} {second}".split()


def test_words_are_counted_from_the_last_cut() -> None:
    first, second, third = "so " * 20, "and " * 4, "but " * 3
    found = spoken(
        (0.0, 0.0, first), (0.0, 0.0, second), (0.0, 1.0, third), (9.0, 9.0, "then"), (9.8, 9.9, "end")
    )
    assert found == f"{first.strip()} {second.strip()}\n\n{third.strip()}\nthen end"


@pytest.mark.parametrize(("pause", "between"), [(4.0, " "), (4.001, "\n")])
def test_a_pause_of_more_than_4_seconds_begins_a_line(pause: float, between: str) -> None:
    assert spoken((1.0, 2.0, "It turns."), (2.0 + pause, 9.0, "It stops.")) == f"It turns.{between}It stops."


@pytest.mark.parametrize(("words", "is_marked"), [(60, True), (61, False)])
def test_speech_has_full_stops_if_there_is_one_in_60_words(words: int, is_marked: bool) -> None:
    first, second = " ".join(["xu"] * 30), " ".join(["li"] * (words - 30)) + "."
    assert (
        spoken((0.0, 1.0, first), (1.0, 2.0, second)) == f"{first}{' ' if is_marked else chr(10) * 2}{second}"
    )


def test_times_have_hours_minutes_and_seconds() -> None:
    text = "1\n00:59:59,999 --> 01:00:00,000\nIt turns.\n\n2\n11:01:01,000 --> 11:01:02,000\nIt stops.\n"
    assert times(read_content(text.encode(), name="a.srt")) == ["0:59:59", "11:01:01"]


def test_rolling_captions_of_several_lines_are_written_once() -> None:
    assert spoken(
        (0.0, 1.0, "one a\ntwo b\nthree c"),
        (1.0, 2.0, "two b\nthree c\nfour d"),
        (2.0, 3.0, "four d\nfive e"),
        (3.0, 4.0, "one a\nfive e"),
    ) == "one a two b three c four d five e one a five e"  # fmt: skip
    assert spoken(
        (0.0, 1.0, "one a\ntwo b"), (1.0, 2.0, "one a\ntwo b more"), (2.0, 3.0, "two b more\nthree c")
    ) == "one a two b more three c"  # fmt: skip
    assert spoken(
        (0.0, 1.0, "one a\ntwo b"), (1.0, 2.0, "two b more\nthree c"), (2.0, 3.0, "three c and\nfour d")
    ) == "one a two b more three c and four d"  # fmt: skip


@pytest.mark.parametrize(
    ("line", "turn"),
    [
        ("- It stops.", True),
        (">> It stops.", True),
        ("> It stops.", False),
        ("Ann: It stops.", True),
        (">> Ann Lee: it stops.", True),
        ("Ann of Olm: it stops.", False),
        ("It: a wheel.", True),
        ("then: it stops.", False),
        ("Ann Lee Moe Ode: it stops.", False),
    ],
)
def test_a_turn_begins_with_a_dash_two_signs_or_a_name_whose_words_all_have_capitals(
    line: str, turn: bool
) -> None:
    assert ("\n" in spoken((0.0, 1.0, "It turns."), (1.0, 2.0, line))) == turn


def test_a_sentence_over_two_cues_names_its_speaker_once() -> None:
    found = read_content(
        cues("Ann: The board met", "Ann: on Monday.", "Ann: It paid.", "Bob: So we", "Cem: No.")
    )
    assert found.text == "Ann: The board met on Monday.\nAnn: It paid.\nBob: So we\nCem: No."
    assert times(found) == ["0:00:00", "0:00:01", "0:00:02", "0:00:03", "0:00:04"]
    late = b"WEBVTT\n\n00:00.000 --> 00:01.000\nAnn: Well. The\n\n00:09.000 --> 00:10.000\nAnn: wall fell.\n"
    assert read_content(late).text == "Ann: Well. The\nAnn: wall fell."


def test_a_voice_that_does_not_end_takes_the_rest_of_its_line() -> None:
    cue = "WEBVTT\n\n00:01.000 --> 00:02.000\n"
    assert read_content(
        f"{cue}<v Ann>It rains and 2 < 3.\nRye <v Bob\n".encode(), name="a.vtt"
    ).text.endswith("Rye")
    with pytest.raises(UserError, match="contains no text"):
        read_content(f"{cue}{'<v ' * 1000}".encode(), name="a.vtt")
