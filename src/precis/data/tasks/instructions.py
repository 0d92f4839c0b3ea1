"""What stands before a document in grounded pre-training: instructions in plain language, several for each kind.

Z-Code++ (section 2.1, Table 1) puts a natural-language instruction before every document of its second phase and
shows two or three for a kind. The wordings here are ours. Those under `training` are trained on; those under
`held_out` never are, so that a model can be asked in words that it has not met. A wording may name a length ("in one
sentence"); it is then given only to pairs whose summary has it, or the model would learn to disregard it.

All are in English, whatever the language of the document, as the paper's are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from precis.config import nearest
from precis.data.pairs.pair import Pair
from precis.data.text.sentences import split_sentences
from precis.errors import UserError

VERSION = "precis-wordings-1"  # part of a run's identity: change it when a wording changes

GENERAL = "Summarize the following text:"
"""Among the training wordings of every kind that asks for a summary: what to say of a document of unknown kind."""


@dataclass(frozen=True, slots=True)
class Wording:
    """One instruction; `sentences` are the least and the most that a summary has that it asks for."""

    text: str
    sentences: tuple[int, int] | None = None

    def fits(self, count: int) -> bool:
        """Whether a summary of `count` sentences is what the wording asks for."""
        return self.sentences is None or self.sentences[0] <= count <= self.sentences[1]


@dataclass(frozen=True, slots=True)
class Kind:
    """The wordings for one kind of document and summary."""

    training: tuple[Wording, ...]
    held_out: tuple[Wording, ...]


_ONE, _TWO, _ONE_OR_TWO, _FEW, _PARAGRAPH = (1, 1), (2, 2), (1, 2), (2, 5), (4, 10)


def _wordings(*texts: str | tuple[str, tuple[int, int]]) -> tuple[Wording, ...]:
    return tuple(Wording(text) if isinstance(text, str) else Wording(*text) for text in texts)


_KINDS = {
    "dialogue": Kind(
        _wordings(
            "Summarize the following dialogue:",
            "What do the people in this conversation talk about?",
            "Tell in the third person what is said and agreed in this chat:",
            ("Summarize the following dialogue in one sentence:", _ONE),
            ("Give the gist of this conversation in a few sentences:", _FEW),
            GENERAL,
        ),
        _wordings(
            "Write a brief account of the conversation below:",
            "Somebody missed this chat. Tell them what it was about:",
            ("Sum up this conversation in two sentences:", _TWO),
        ),
    ),
    "interview": Kind(
        _wordings(
            "Summarize the following interview:",
            "What is this interview about?",
            "Say briefly what the guests of this programme talk about:",
            ("Summarize the following interview in one sentence:", _ONE),
            ("Put this interview into two sentences:", _TWO),
            ("Retell this interview in a few sentences:", _FEW),
            GENERAL,
        ),
        _wordings(
            "Write an announcement of the broadcast whose transcript follows:",
            "What does one learn from this interview?",
            ("Condense this transcript of an interview into one sentence:", _ONE),
        ),
    ),
    "news": Kind(
        _wordings(
            "Summarize the following news article:",
            "What happened according to this report?",
            "State the main points of this news story:",
            ("Summarize the following news article in one sentence:", _ONE),
            ("Report the news below in two sentences:", _TWO),
            ("Rewrite this news article as a few sentences:", _FEW),
            ("Shorten this news article to one paragraph:", _PARAGRAPH),
            GENERAL,
        ),
        _wordings(
            "Give a short version of this press report:",
            "What should a reader in a hurry know about this story?",
            ("Tell in a single sentence what this article reports:", _ONE),
            ("Sum up this report in a few sentences:", _FEW),
        ),
    ),
    "news_cluster": Kind(
        _wordings(
            "Summarize the following news articles on one event:",
            "Write one summary of these reports:",
            "What do the following articles, taken together, report?",
            ("Merge these news articles into one paragraph:", _PARAGRAPH),
            GENERAL,
        ),
        _wordings(
            "Several papers report on the same event. Say what is known about it:",
            "Bring these news stories together in one short text:",
        ),
    ),
    "headline": Kind(
        _wordings(
            "Write a headline for the following news article:",
            "Headline of this report:",
            "Give this news story a title:",
            "Put the news below into a few words:",
        ),
        _wordings(
            "What would the newspaper print above this article?",
            "Find a short title for the following report:",
        ),
    ),
    "how_to": Kind(
        _wordings(
            "Summarize the following instructions:",
            "List briefly the steps that this guide describes:",
            "What does one have to do according to this text?",
            ("Summarize the following paragraph in one sentence:", _ONE),
            ("Summarize this guide in a few sentences:", _FEW),
            GENERAL,
        ),
        _wordings(
            "Reduce this how-to article to its steps:",
            "Write the short version of this guide:",
            ("Say in one sentence what this paragraph advises:", _ONE),
        ),
    ),
    "how_to_in_english": Kind(
        _wordings(
            "Summarize the following instructions in English:",
            "List briefly, in English, the steps that this guide describes:",
            "Write an English summary of this text:",
            ("Summarize this guide in a few English sentences:", _FEW),
        ),
        _wordings(
            "Say in English what this article advises:",
            "Reduce this how-to article to its steps, in English:",
        ),
    ),
    "email_subject": Kind(
        _wordings(
            "Write a subject line for the following e-mail:",
            "What is the subject of this e-mail?",
            "Say in a few words what this message is about:",
            "Subject of the message below:",
        ),
        _wordings(
            "Which words would you put into the subject field of this e-mail?",
            "Give this message a short title:",
        ),
    ),
    "email_thread": Kind(
        _wordings(
            "Summarize the following e-mails:",
            "What do the writers of this e-mail discussion say?",
            "Who holds which opinion in this exchange of messages?",
            ("Summarize this mailing-list discussion in a few sentences:", _FEW),
            GENERAL,
        ),
        _wordings(
            "Report on the following correspondence:",
            "Someone joins this e-mail discussion late. Bring them up to date:",
        ),
    ),
    "abstract": Kind(
        _wordings(
            ("Summarize the following abstract in one sentence:", _ONE),
            "Summarize the following abstract:",
            "What does this paper show?",
            "State the contribution of the work described here:",
            ("Reduce this abstract to a few sentences:", _FEW),
            GENERAL,
        ),
        _wordings(
            "What is new in this work?",
            "Explain to a busy colleague what this paper is about:",
            ("Give the main result of this abstract in a single sentence:", _ONE),
        ),
    ),
    "paper": Kind(
        _wordings(
            "Summarize the following scientific article:",
            "Write an abstract of this article:",
            "What was studied here, how, and with what result?",
            ("Summarize this paper in a few sentences:", _FEW),
            ("Summarize this paper in one paragraph:", _PARAGRAPH),
            GENERAL,
        ),
        _wordings(
            "Give an overview of the research reported below:",
            "State aim, method and findings of this paper:",
        ),
    ),
    "meeting": Kind(
        _wordings(
            "Summarize the following meeting:",
            "Write short minutes of this meeting:",
            "What was discussed and decided in this meeting?",
            ("Summarize the transcript of this meeting in a few sentences:", _FEW),
            ("Summarize this meeting in one paragraph:", _PARAGRAPH),
            GENERAL,
        ),
        _wordings(
            "Report to someone who was absent what this meeting came to:",
            "Draw the main points from the following transcript of a meeting:",
        ),
    ),
    "medical_note": Kind(
        _wordings(
            "Write the doctor's note on the following conversation with a patient:",
            "Summarize what the patient tells the doctor:",
            "Turn this visit to the doctor into an entry of the patient's record:",
            ("Note in one sentence what this conversation between doctor and patient establishes:", _ONE),
            GENERAL,
        ),
        _wordings(
            "Which findings of this consultation belong into the medical record?",
            "Document the following conversation between doctor and patient:",
        ),
    ),
    "forum": Kind(
        _wordings(
            "Summarize the following post:",
            "Write a TL;DR of this post:",
            "What happened to the writer of this story?",
            ("Sum up this post in one sentence:", _ONE),
            GENERAL,
        ),
        _wordings(
            "Give the short version of the story told here:",
            "In brief, what does this writer tell the forum?",
        ),
    ),
    "facts": Kind(
        _wordings(
            ("Describe the following facts in one or two sentences:", _ONE_OR_TWO),
            "Put the following facts into words:",
            "Write a text that states these facts:",
            "Turn the following data into fluent text:",
            ("Say all of this in one sentence:", _ONE),
        ),
        _wordings(
            "Express these data in natural language:",
            ("Make one sentence of the following facts:", _ONE),
            "Write a description from these entries:",
        ),
    ),
    "question": Kind(
        _wordings(
            "Ask for the following words of the text:",
            "Write a question that the following words answer:",
            "What would one ask to be told the following?",
            "Find a question on the text below with this answer:",
        ),
        _wordings(
            "Make up a question for a quiz with this solution:",
            "An answer and its source follow. Write the question:",
        ),
    ),
    "simplification": Kind(
        _wordings(
            "Explain the following article to children:",
            "Rewrite this encyclopedia article in simple words:",
            "Write a shorter and easier version of this article:",
            "What should a child know about this topic?",
        ),
        _wordings(
            "Retell this article so that a young reader understands it:",
            "Make a short text in plain language of the following article:",
        ),
    ),
    "document": Kind(
        _wordings(
            GENERAL,
            "What is this text about?",
            "State the main point of the following document:",
            ("Summarize the following text in one sentence:", _ONE),
            ("Summarize the following text in a few sentences:", _FEW),
        ),
        _wordings(
            "Give a short version of this document:",
            "What should one remember of the text below?",
            ("Condense this text into a single sentence:", _ONE),
        ),
    ),
}

KINDS: Mapping[str, Kind] = MappingProxyType(_KINDS)


def wording_for(kind: str, pair: Pair, uniform: float, *, held_out: bool = False) -> str:
    """An instruction for a pair: one of its kind's wordings that fit the length of its summary.

    Args:
        kind: a key of `KINDS`.
        pair: its summary's sentences are counted (`precis.data.text.sentences`).
        uniform: a number in [0, 1); equal numbers give equal wordings.
        held_out: choose among the wordings that are kept from training.

    Raises:
        UserError: an unknown kind.
        ValueError: `uniform` is not in [0, 1).
    """
    if kind not in KINDS:
        raise UserError(f"unknown kind of instruction {kind!r}{nearest(kind, KINDS)}")
    if not 0 <= uniform < 1:
        raise ValueError(f"uniform={uniform} must be in [0, 1)")
    wordings = KINDS[kind].held_out if held_out else KINDS[kind].training
    count = len(split_sentences(pair.summary)) if any(w.sentences for w in wordings) else 0
    fitting = [wording for wording in wordings if wording.fits(count)]
    return fitting[int(uniform * len(fitting))].text
