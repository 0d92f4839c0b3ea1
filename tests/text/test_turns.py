"""Chats and transcripts: each form is recognized, stamps are not text, and headings with a colon are not turns."""

from collections.abc import Callable

import pytest

from precis_text.documents.reader import read_content
from precis_text.turns import dialogue_speakers, speaker_of, turns_of
from precis_text.units import extraction_units

SAID = (
    ("Ann", "Did they vote on the roof?"),
    ("Ben", "Yes. It passed, and it costs 40,000 euros."),
    ("Ann", "Who pays for it?"),
    ("Dr. Cem Ode", "The club pays half. The town pays the rest."),
)
SHORT = {"Ann": "ann", "Ben": "ben", "Dr. Cem Ode": "cem"}
FORMS: dict[str, Callable[[int, str, str], str]] = {
    "WhatsApp, Germany": lambda n, who, text: f"14.10.26, 15:3{n} - {who}: {text}",
    "WhatsApp, USA": lambda n, who, text: f"10/14/26, 3:3{n}\u202fPM - {who}: {text}",
    "WhatsApp, Brazil": lambda n, who, text: f"14/10/2026 15:3{n} - {who}: {text}",
    "WhatsApp, Spain": lambda n, who, text: f"14/10/26, 3:3{n} p. m. - {who}: {text}",
    "WhatsApp, France": lambda n, who, text: f"14/10/2026 \u00e0 15:3{n} - {who}: {text}",
    "WhatsApp, China": lambda n, who, text: f"2026/10/14 \u4e0b\u53483:3{n} - {who}: {text}",
    "WhatsApp, Egypt": lambda n, who, text: f"14/10/2026\u060c 3:3{n} \u0645 - {who}: {text}",
    "WhatsApp, Egypt, marks": lambda n, who, text: (
        f"\u200f14\u200f/10\u200f/2026\u060c 3:3{n} \u0645 - {who}: {text}"
    ),
    "WhatsApp, Iran": lambda n, who, text: f"1405/07/22\u060c\u200f 15:3{n} - {who}: {text}",
    "iMessage": lambda n, who, text: (
        f"Oct 14, 2026  3:3{n}:09 PM (Read by you after 2 minutes)\n{who}\n{text}\n"
    ),
    "Messenger, copied": lambda n, who, text: f"{who}\n{text}\nOct 14, 2026, 3:3{n} PM",
    "Mattermost, copied": lambda n, who, text: f"{who}\n\n3:3{n} PM\n{text}\n",
    "Fireflies": lambda n, who, text: f"{who} - 00:3{n}\n{text}\n",
    "Grain": lambda n, who, text: f"{who} | 00:3{n}\n{text}\n",
    "Sonix": lambda n, who, text: f"[00:00:3{n}] - {who}\n{text}\n",
    "iPhone, USA": lambda n, who, text: f"[10/14/26, 3:3{n}:09\u202fPM] {who}: {text}",
    "iPhone, Germany": lambda n, who, text: f"[14.10.26, 15:3{n}:09] ~ {who}: {text}",
    "Telegram": lambda n, who, text: f"{who}, [14.10.2026 15:3{n}]\n{text}\n",
    "Skype": lambda n, who, text: f"[14.10.2026 15:3{n}:01] {who}: {text}",
    "KakaoTalk": lambda n, who, text: f"[{who}] [\uc624\ud6c4 3:3{n}] {text}",
    "LINE": lambda n, who, text: f"15:3{n}\t{who}\t{text}",
    "Slack, brackets": lambda n, who, text: f"[10:3{n} AM] {who}: {text}",
    "Slack, copied": lambda n, who, text: f"{who}\n  10:3{n} AM\n{text}",
    "Slack, one line": lambda n, who, text: f"{who}  10:3{n} AM\n{text}",
    "Discord": lambda n, who, text: f"{who} \u2014 Today at 3:3{n} PM\n{text}\n",
    "Discord, German": lambda n, who, text: f"{who} \u2014 heute um 15:3{n} Uhr\n{text}",
    "Teams, copied": lambda n, who, text: f"{who}   0:3{n}\n{text}\n",
    "Teams, dates": lambda n, who, text: f"[10/14/26 3:3{n} PM] {who}\n{text}\n",
    "Zoom": lambda n, who, text: f"10:3{n}:12\t From {who} to Everyone : {text}",
    "Zoom, new": lambda n, who, text: f"10:3{n}:12 From {who} To Everyone:\n\t{text}",
    "Zoom, transcript": lambda n, who, text: f"[{who}] 10:3{n}:12\n{text}\n",
    "Otter": lambda n, who, text: f"{who}  0:0{n}  \n{text}\n",
    "Google Meet": lambda n, who, text: f"{who}\n00:0{n}:05\n{text}",
    "forum": lambda n, who, text: f"#{n + 1}\n{who}\nSenior Member\nJoined: Feb 2014\n\n{text}\n",
    "forum, German": lambda n, who, text: f"#{n + 1}\n{who}\nRegistriert seit: 3.2.2014\n{text}\n",
    "Google Chat": lambda n, who, text: f"{who}, Oct 14, 3:3{n} PM\n{text}\n",
    "Rev": lambda n, who, text: f"{who} (00:0{n}):\n{text}\n",
    "Descript": lambda n, who, text: f"[00:00:0{n}] {who}: {text}",
    "GitHub": lambda n, who, text: f"{who} commented {n + 2} days ago\n\n{text}\n",
    "GitHub, Markdown": lambda n, who, text: f"**@{who}** commented on {n + 2} Sep 2026:\n\n{text}\n",
    "GitHub, copied": lambda n, who, text: f"{who} commented last week • edited\n{text}\n",
    "GitHub, copied, of today": lambda n, who, text: f"{who}\ncommented\non Mar {n + 2}\n{text}\n",
    "GitHub, copied, name above": lambda n, who, text: f"{who}\ncommented on Mar {n + 2}\n{text}\n",
    "GitHub, with an office": lambda n, who, text: (
        f"**@{who}** (the keeper of Olm) commented {n + 2} days ago\n\n{text}\n"
    ),
    "GitLab": lambda n, who, text: f"{who} @ab · {n + 2} days ago\n{text}\n",
    "Jira": lambda n, who, text: f"{who} added a comment - 02/Aug/26 8:1{n} AM\n{text}\n",
    "a board": lambda n, who, text: f"{who} wrote on 02 Aug 2026 08:1{n}:\n{text}\n",
    "a ticket": lambda n, who, text: f"{who}\n02 Aug 2026 08:1{n}\n{text}\n",
    "a ticket, USA": lambda n, who, text: f"{who}\nAug 2, 2026, 8:1{n} AM\n{text}\n",
    "Signal": lambda n, who, text: (
        f"From: {who} (+49173555{n})\nType: incoming\nSent: Tue, 7 Jan 2025 17:2{n}:11 +0100\n"
        f"Received: Tue, 7 Jan 2025 17:2{n}:12 +0100\n\n{text}\n"
    ),
    "plain": lambda n, who, text: f"{who}: {text}",
    "plain, with blank lines": lambda n, who, text: f"{who.upper()}: {text}\n",
}
SHORT_FORMS: dict[str, Callable[[int, str, str], str]] = {
    "mIRC": lambda n, who, text: f"[10:3{n}:12] <{who}> {text}",
    "irssi": lambda n, who, text: f"10:3{n} <@{who}> {text}",
    "HexChat": lambda n, who, text: f"Oct 14 10:3{n}:12 <{who}>\t{text}",
    "IRC without times": lambda n, who, text: f"<{who}> {text}",
    "WeeChat": lambda n, who, text: f"2026-10-14 10:3{n}:12\t{who}\t{text}",
    "GitHub, with a picture and a rank": lambda n, who, text: (
        f"@{who}\n{who} commented on Mar {n + 2}\nCollaborator\n{text}\n"
    ),
    "Hacker News": lambda n, who, text: f"{who} {n + 2} hours ago | next [–]\n{text}\n",
    "Reddit": lambda n, who, text: f"{who}\n• {n + 2}h ago\n{text}\n",
}
NUMBERED = (
    *("Otter", "Rev", "Descript", "Sonix", "Slack, one line", "Teams, copied", "Google Meet", "plain"),
    *("Grain", "Slack, brackets", "Zoom, transcript"),
)
DIARISED: dict[str, Callable[[int, str, str], str]] = {
    "WhisperX": lambda n, who, text: f"[00:0{n}.000 --> 00:0{n}.900] {who}: {text}",
    "without times": lambda n, who, text: f"{who}: {text}",
    "pyannote": lambda n, who, text: f"[{who}] (0.5s - 3.{n}s): {text}",
    "Otter": lambda n, who, text: f"{who}  0:0{n}\n{text}\n",
}


def written(form: Callable[[int, str, str], str], names: dict[str, str] | None = None) -> str:
    said = [((names or {}).get(who, who), text) for who, text in SAID]
    return "\n".join(form(number, who, text) for number, (who, text) in enumerate(said))


def shown(document: str) -> list[str]:
    return [unit.text for unit in extraction_units(document)]


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_turns_with_speakers_and_without_stamps(name: str) -> None:
    names = {who: who.upper() for who, _ in SAID} if name == "plain, with blank lines" else {}
    expected = [f"{names.get(who, who)}: {text}" for who, text in SAID]
    units = extraction_units(written(FORMS[name]))
    assert [unit.text for unit in units] == expected
    assert [unit.speaker for unit in units] == [line.partition(":")[0] for line in expected]
    assert not any(unit.heading or unit.aside for unit in units)


@pytest.mark.parametrize("name", SHORT_FORMS)
def test_the_forms_of_irc(name: str) -> None:
    assert shown(written(SHORT_FORMS[name], SHORT)) == [f"{SHORT[who]}: {text}" for who, text in SAID]


@pytest.mark.parametrize("name", DIARISED)
def test_diarised_speakers(name: str) -> None:
    names = {"Ann": "SPEAKER_00", "Ben": "SPEAKER_01", "Dr. Cem Ode": "SPEAKER_02"}
    assert shown(written(DIARISED[name], names)) == [f"{names[who]}: {text}" for who, text in SAID]


@pytest.mark.parametrize("name", NUMBERED)
@pytest.mark.parametrize("word", ["Speaker", "Sprecher"])
def test_speakers_with_numbers_are_no_dates(name: str, word: str) -> None:
    names = {"Ann": f"{word} 1", "Ben": f"{word} 2", "Dr. Cem Ode": f"{word} 3"}
    assert shown(written(FORMS[name], names)) == [f"{names[who]}: {text}" for who, text in SAID]


def test_a_time_of_its_own_is_above_more_of_the_same_speaker() -> None:
    slack = (
        "9:48\nhello all\nAnn Ode\n  9:49 AM\nthe quay is late\nBen Lee\n  9:50 AM\nfine with me\n9:50\n"
        "I'll tell the town\nAnn Ode\n  9:52 AM\nwhen do we meet?\nBen Lee\n  9:53 AM\n9:30\n"
    )
    assert [(turn.time, turn.line) for turn in turns_of(slack)] == [
        ("9:48", "hello all"),
        ("9:49 AM", "Ann Ode: the quay is late"),
        ("9:50 AM", "Ben Lee: fine with me"),
        ("9:50", "Ben Lee: I'll tell the town"),
        ("9:52 AM", "Ann Ode: when do we meet?"),
        ("9:53 AM", "Ben Lee: 9:30"),
    ]
    assert shown(slack)[:2] == ["hello all", "Ann Ode: the quay is late"]


def test_long_messages_of_a_ticket_belong_to_the_name_above_the_time() -> None:
    long = "Since this morning the crane at the quay lifts every box twice, and nobody knows why it does so."
    ticket = (
        f"Ann Lee\n02 Aug 2024 08:14\n{long}\n\nHelp (Ben)\n02 Aug 2024 08:21\nHi Ann,\nwhich box?\n\n"
        f"Ann Lee\n02 Aug 2024 08:29\nThe red one\n\nHelp (Ben)\n02 Aug 2024 08:40\n{long}\n"
    )
    assert [(turn.speaker, turn.text, turn.is_notice) for turn in turns_of(ticket)] == [
        ("Ann Lee", long, False),
        ("Help (Ben)", "Hi Ann, which box?", False),
        ("Ann Lee", "The red one", False),
        ("Help (Ben)", long, False),
    ]


def test_the_time_of_a_message_of_signal_is_when_it_was_sent() -> None:
    assert [turn.time for turn in turns_of(written(FORMS["Signal"]))] == [f"17:2{n}:11" for n in range(4)]


def test_a_speaker_with_a_number_leaves_the_words_of_others_to_them() -> None:
    call = "Ann Ode: Who asks them?\nSpeaker 3: I did.\nAnn Ode: And the price?\nSpeaker 3: Five euros.\n"
    assert [unit.speaker for unit in extraction_units(call)] == ["Ann Ode", "Speaker 3"] * 2


def test_what_programs_write_below_and_between_messages_is_left_out() -> None:
    chat = (
        "[14.05.2024 20:09] ann\nwe raised 2,310 euros (edited)\n\n{Reactions}\n🎉 (5) ❤️ (2)\n\n"
        "[14.05.2024 20:20] ben\ni need the logo\n\n{Attachments}\nhttps://olm.example/sketch.png\n"
        "[14.05.2024 20:21] ann\n{sic} it is here\n"
    )
    said = ["ann: we raised 2,310 euros", "ben: i need the logo", "ann: {sic} it is here"]
    assert [turn.line for turn in turns_of(chat)] == said
    thread = (
        "ann commented on Mar 4\nIt crashes.\n\n👍\n3\n@ben ben added bug regression labels on Mar 5\n"
        "@cem cem mentioned this issue on Mar 8\nFlush the reader #2425\nMerged\nben commented on Mar 9\n"
        "I added three tests on Monday.\n\nben reopened this on May 11\n"
    )
    assert [turn.line for turn in turns_of(thread)] == [
        "ann: It crashes.",
        "ben: I added three tests on Monday.",
    ]
    irc = (
        "17:00 <ann> #startmeeting olm weekly\n17:00 <bot> Meeting started Wed Oct  9 17:00:02 2024 UTC. The chair is "
        "ann.\n17:01 <ben> The meeting started late.\n17:19 <ann> #endmeeting\n17:19 <bot> Meeting ended Wed Oct  9 "
        "17:19:30 2024 UTC.\n"
    )
    assert [turn.line for turn in turns_of(irc) if not turn.is_notice] == ["ben: The meeting started late."]


def test_lines_of_the_program_are_asides() -> None:
    document = (
        "14/10/2026, 15:30 - Messages and calls are end-to-end encrypted. Only people in this chat can read them.\n"
        "14/10/2026, 15:30 - Ann: Is the roof done?\n"
        "14/10/2026, 15:31 - Ben added Cem\n"
        "14/10/2026, 15:32 - Cem: <Media omitted>\n"
        "14/10/2026, 15:33 - Cem: This message was deleted\n"
        "14/10/2026, 15:34 - Cem: Yes, and it is\nend-to-end tested. <This message was edited>\n"
    )
    units = extraction_units(document)
    assert [unit.text for unit in units if not unit.aside] == [
        "Ann: Is the roof done?",
        "Cem: Yes, and it is end-to-end tested.",
    ]
    assert len(units) == 6
    irc = "[10:30] <ann> Hello.\n[10:31] * ben waves\n[10:31] -!- cem has joined\n[10:32] <ben> It rains."
    assert [unit.text for unit in extraction_units(irc) if not unit.aside] == [
        "ann: Hello.",
        "ben: It rains.",
    ]


def test_an_iphone_marks_the_lines_of_its_program() -> None:
    head = "[14/10/2026, 3:30:01\u202fPM] "
    document = f"{head}Quay: \u200eBen changed the group name to Quay\n{head}Ann: I changed the subject of the letter."
    assert [turn.is_notice for turn in turns_of(document)] == [True, False]


def test_turns_have_times_and_the_text_before_them_stays() -> None:
    document = "Call of the board\n\nAnn Ode   0:30\nWe start.\n\nBen Lee   0:45\nIt leaks.\n\nAnn Ode   1:10\nStill?\n"
    assert [turn.time for turn in turns_of(document)] == ["0:30", "0:45", "1:10"]
    assert shown(document)[0] == "Call of the board"
    for unit in extraction_units(document)[1:]:
        assert unit.text.partition(": ")[2] in document[unit.start : unit.stop]


def test_a_long_message_is_cut_and_every_sentence_knows_its_speaker() -> None:
    long = " ".join(f"This is sentence {number} of what she wrote." for number in range(12))
    document = f"[10:30] <ann> {long}\n[10:31] <ben> Thanks."
    units = extraction_units(document)
    assert len(units) == 13
    assert {unit.speaker for unit in units[:12]} == {"ann"}
    assert units[0].text == "ann: This is sentence 0 of what she wrote."
    assert [" ".join(document[unit.start : unit.stop].split()) for unit in units[1:12]] == [
        unit.text for unit in units[1:12]
    ]


def test_a_transcript_with_times_only_flows_over_them() -> None:
    document = "0:00\nThe board met on\n0:04\nMonday and agreed.\n0:09\nIt builds the\n0:12\nquay in May."
    assert shown(document) == ["The board met on Monday and agreed.", "It builds the quay in May."]


def test_a_transcript_without_full_stops_is_cut_between_two_times() -> None:
    line = "so then we saw that the old wall had moved"
    document = "\n".join(f"0:{number:02}\n{line} {number} times" for number in range(9))
    units = shown(document)
    assert len(units) >= 4
    assert " ".join(units) == " ".join(f"{line} {number} times" for number in range(9))


@pytest.mark.parametrize(
    "document",
    [
        "Day one\n\n9:00 Registration\n9:30 Welcome\n10:00 Talk of Ann Ode\n\nThe day is free. Lunch is at noon.",
        "9:00 Registration and tea\n9:30 Opening by the mayor, main hall\n10:15 Dr A. Ode: Cranes of the north\n"
        "11:30 Panel: Who pays for the quay?\n12:30 Lunch in the canteen\n\nThe day is free. Bring a cup.",
        "9:00 Registration\nDownstairs.\n10:30 Coffee Break\nTea is free.\n11:00 Opening\nThe mayor speaks.\n"
        "15:30 Coffee Break\nTea again.\n16:00 End\nWe clean up.",
        "8:15 School\nBehind the gate.\n8:40 Market Square\nAt the fountain.\n\nThe fare is 4 euros.",
        "10:15 Dr A. Ode: Cranes\n11:00 Prof. Lee: Wheels\n11:30 Ms Vik: The town\n\nEntry is free. Bring a cup.",
        "Room 12 (10:30): Chess\nRoom 14 (11:00): Dance\nRoom 12 (12:00): Go\n\nThe rooms are free. Bring a cup.",
        "Park opens again\n2 Aug 2024, 08:14\nThe park is open.\n\nBus line stops\n1 Aug 2024, 17:02\nIt is late.\n\n"
        "Council meets\n1 Aug 2024, 09:30\nIt meets on Monday.",
        "Ann wrote on 3 Feb 2025 14:05:\n> It is late.\nSo it is.\n\nBen wrote on 2 Feb 2025 14:05:\n> Late?\n",
        "Monday 9:00\nTuesday 10:00\nFriday 9:00\n\nThe pool is open on these days. Bring a towel.",
        "The train leaves at 10:30.\nWe met at 11:15 in Oslo.\nIt was late.",
        "Ann: 3\n\nThe rest of this page is about the bridge. It was closed. Nobody knew why. It reopened.",
    ],
)
def test_timetables_and_prose_with_times_are_not_chats(document: str) -> None:
    assert turns_of(document) == []
    assert not any(unit.speaker for unit in extraction_units(document))


def test_a_single_line_with_a_colon_is_not_a_turn() -> None:
    report = (
        "The bridge at Olm was closed because a pillar had cracked. The repair takes nine weeks.\n\n"
        "Appendix A: Record of the northern pillar, part 1\n\nThe gauge lay between 3 and 5 millimetres.\n\n"
        "Appendix B: Record of the southern pillar, part 2\n\nThe gauge lay between 4 and 6 millimetres.\n"
    )
    units = extraction_units(report)
    assert [unit.text for unit in units if unit.heading] == [
        "Appendix A: Record of the northern pillar, part 1",
        "Appendix B: Record of the southern pillar, part 2",
    ]
    assert not any(unit.speaker for unit in units)


def test_a_dialogue_needs_several_lines_and_labels_do_not_speak() -> None:
    assert dialogue_speakers(["Ann: Hello.", "Ben: Hi."]) == {"Ann", "Ben"}
    assert not dialogue_speakers(["Ann: Hello.", "It rains.", "It snows."])
    prose = ["It rains."] * 12
    assert dialogue_speakers(["Ann: Hello.", "Ben: Hi.", "Ann: Oh.", "Ben: Yes.", *prose]) == {"Ann", "Ben"}
    assert dialogue_speakers(["Speaker 1: Hello.", "Speaker 2: Hi."]) == {"Speaker 1", "Speaker 2"}
    assert not dialogue_speakers(["TOP 1: Kasse", "Sie stimmt.", "TOP 2: Halle", "TOP 3: Fest"])
    again = ["Point 1: we pay", "Point 2: we do not", "Point 1: why not"]
    assert dialogue_speakers(again) == {"Point 1", "Point 2"}
    assert not dialogue_speakers(["From: Ann", "To: Ben", "Subject: The roof", "Date: Monday"])
    assert not dialogue_speakers(["- Ann: sings", "- Ben: pays", "* Cem: left"])
    assert speaker_of("Rt. Hon. Ann Lee: No.") == "Rt. Hon. Ann Lee"
    office = "Ann Lee (Minister of Trade, Small Business and the Promotion of Exports)"
    assert speaker_of(f"{office}: No.") == office
    assert speaker_of("Figure 1: The wall") == ""
    assert speaker_of("S. 12: Der Kai") == ""


def test_an_initial_before_a_name_is_none_of_a_list_or_of_an_author() -> None:
    court = ["M. Leroux: Non.", "R. G. Vik: Si.", "Mme Ode: Bien.", "M. Leroux: Alors."]
    assert dialogue_speakers(court) == {"M. Leroux", "R. G. Vik", "Mme Ode"}
    contract = ["A. Payment: half of it.", "B. Delivery: we bring it.", "C. Term: a year."]
    assert not dialogue_speakers(contract)
    books = ["J. Ode: Bread.", "K. Lee: Mills.", "J. Ode: Wheels.", "K. Lee: Oak."]
    assert not dialogue_speakers([*["It rains."] * 12, *books])


@pytest.mark.parametrize(
    "chat",
    [
        "User 1: The server is down since noon\nUser 2: Do not restart it before I am back\nUser 1: Why not\n"
        "User 3: The backup is not finished",
        "Witness 1: No, I did not see it\nWitness 2: I only heard a bang",
        "Player 1: I do not move\nPlayer 2: Then I win",
        "Article 1: The buyer pays\nArticle 2: The seller does not pay",
        "Witness 1: At nine\nWitness 2: I did not look at a clock.",
    ],
)
def test_who_has_a_number_for_a_name_speaks(chat: str) -> None:
    units = extraction_units(chat)
    assert [unit.text for unit in units] == chat.split("\n")
    assert [unit.speaker for unit in units] == [line.partition(":")[0] for line in chat.split("\n")]
    assert not any(unit.heading or unit.aside for unit in units)


def test_a_french_colon_has_a_space_before_it() -> None:
    chat = "14/10/2026 à 15:31 - Anne : Le moulin tourne ?\n14/10/2026 à 15:32 - Chloé : Oui, depuis mai."
    assert [turn.speaker for turn in turns_of(chat)] == ["Anne", "Chloé"]


@pytest.mark.parametrize("gap", ["\n\n0:0{}\n", "\n0:0{}\n\n", "\n\n0:0{}\n\n"])
def test_a_sentence_does_not_cross_a_blank_line_beside_a_time(gap: str) -> None:
    parts = ["0:00\nThe board met on", "Monday and agreed.", "It builds the", "quay in May."]
    document = "".join(part + gap.format(number) for number, part in enumerate(parts, start=1))
    assert shown(document + "It is done.") == [
        "The board met on",
        "Monday and agreed.",
        "It builds the",
        "quay in May.",
        "It is done.",
    ]


def test_a_sentence_does_not_cross_into_a_turn_that_names_its_speaker() -> None:
    document = (
        "0:00\nThe board met on\n0:04\nAnn: Monday and agreed.\n0:09\nIt builds the\n0:12\nquay in May."
    )
    assert shown(document) == ["The board met on", "Ann: Monday and agreed.", "It builds the quay in May."]


def test_the_comments_below_an_issue_are_turns_and_its_description_is_text() -> None:
    issue = """# Rows are lost

**@pia** opened this issue on 3 Sep 2026

## Steps

1. Save it.
2. Open it.

## Comments

**@lena-m** commented on 4 Sep 2026

I'll fix the quoting.

**@pia** commented on 5 Sep 2026

Thanks, it works with the file of the club.
"""
    units = extraction_units(read_content(issue.encode(), name="issue.md").text)
    said = [(unit.speaker, unit.text) for unit in units if unit.speaker]
    assert said == [
        ("lena-m", "lena-m: I'll fix the quoting."),
        ("pia", "pia: Thanks, it works with the file of the club."),
    ]
    assert {"Rows are lost", "Steps", "Comments"} <= {unit.text for unit in units if unit.heading}


def test_a_sentence_about_a_comment_is_no_turn() -> None:
    text = "Ann commented on 4 Sep 2026 that the boat leaks.\nBen replied a day later and sold it.\n"
    assert turns_of(text) == []


def test_questions_and_answers_of_an_interview_are_turns() -> None:
    interview = (
        "Interview with Ann\n\nQ: Was it cold?\nA: It was.\n\nQ: What was hard?\nA: The silence of the ice.\n"
    )
    assert dialogue_speakers(interview.split("\n")) == {"Q", "A"}
    header = "De: Ann\nA: Ben\nObjet: le quai\n\nLe quai est fermé.\n"
    assert dialogue_speakers(header.split("\n")) == frozenset()


@pytest.mark.parametrize(
    "text",
    [
        "Ann replied 2 times\nBob commented 5 posts\nCem commented 12 more\nI replied an hour\nShe replied a little",
        "Critics of the plan replied last week\nand the board commented yesterday\non the budget for the hall.",
        "Ann replied 3 days ago\nBob commented 2 days ago\nCem commented yesterday",
    ],
)
def test_prose_about_comments_is_no_thread(text: str) -> None:
    assert turns_of(text) == []
    assert read_content(text.encode(), name="a.txt").text == text


def test_comments_of_programs_and_without_a_date_are_turns() -> None:
    thread = (
        "ann commented 3 days ago\nThe parser crashes.\n\ndependabot[bot] commented 2 days ago\nBumps lxml.\n\n"
        "Bob Moe left a comment\nI cannot reproduce it.\n\ncem commented yesterday\nFixed.\n"
    )
    assert [turn.speaker for turn in turns_of(thread)] == ["ann", "dependabot[bot]", "Bob Moe", "cem"]


@pytest.mark.parametrize(
    "lines",
    [
        ["A: List of members", "B: List of rooms", "A: see above", "B: see above"],
        ["Which one is red?", "A: Mars", "B: Jupiter", "C: Venus"],
    ],
)
def test_letters_of_a_list_are_no_speakers_of_answers(lines: list[str]) -> None:
    assert "A" not in dialogue_speakers(lines)


def test_what_a_message_says_of_labels_is_no_event() -> None:
    chat = (
        "[10:00] Ann: Did you paint it?\nBen added new price labels on Monday\n"
        "[10:05] Ben: Yes, I did that.\n[10:06] Ann: Good. Thank you."
    )
    assert "price labels" in turns_of(chat)[0].text


def test_numbered_speakers_of_wrapped_lines_speak() -> None:
    talk = "\n".join(
        f"Speaker {number}: The rain came in during the winter and the wall\nis wet. We asked three firms what it\n"
        "would cost. They gave us prices between 3,000\nand 5,000 pounds. We have 2,000 in the bank."
        for number in (1, 2, 3)
    )
    assert dialogue_speakers(talk.split("\n")) == {"Speaker 1", "Speaker 2", "Speaker 3"}
