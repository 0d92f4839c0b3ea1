"""Schemas of the native request and answer.

A body of 4 MB can contain two million errors. Validation of lists and of unknown fields stops at the first one.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, model_validator
from pydantic_core import PydanticCustomError

from precis.generation.summarizer import Summary
from precis_text.forms.form import FormType

# An answer to one document for the OpenAPI schema, built by the same code as all answers
TEXT = (
    "The harbour of Elm was closed on Monday. A storm had damaged two cranes. "
    "Repairs take a week, the port office said. Ferries leave from Oak until then."
)
SUMMARY = Summary(
    text="The harbour of Elm was closed on Monday.", document_tokens=38, tokens_read=38, summary_tokens=10,
    mode="extract", places=((0, 40),),
)  # fmt: skip


def shown(whole: dict[str, Any], events: str) -> dict[int | str, dict[str, Any]]:
    """Return the schema entry of a route's answers: as JSON, and as a stream of events."""
    return {
        200: {
            "description": "The answer; with `stream`, events.",
            "content": {"application/json": {"example": whole}, "text/event-stream": {"example": events}},
        }
    }


Count = Annotated[StrictInt | None, Field(ge=1, le=20_000)]


class SummarizeRequest(BaseModel):
    """The documents to summarize, and the options."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"text": TEXT, "words": 20, "support": True},
                {"text": TEXT, "type": "key-points", "about": "Who pays for the boats?"},
                {"text": [TEXT, "A second document."], "sentences": 1},
            ]
        },
    )

    text: Annotated[
        StrictStr | Annotated[list[StrictStr], Field(min_length=1, fail_fast=True)],
        Field(description="A document, or a list of documents."),
    ]
    model: StrictStr | None = Field(None, description="A model of /v1/models. Default: the first.")
    mode: Literal["abstract", "extract"] | None = Field(
        None, description="abstract: write. extract: choose sentences. Default: the model's first mode."
    )
    type: FormType = Field("paragraph", description="The form of the summary.")
    about: Annotated[StrictStr | None, Field(max_length=2000)] = Field(
        None, description="A question or topic: summarize what the document says about it."
    )
    words: Count = Field(None, description="At most this many words.")
    sentences: Annotated[StrictInt | None, Field(ge=1, le=1000)] = Field(
        None, description="At most this many sentences."
    )
    tokens: Count = Field(None, description="At most this many of the model's tokens.")
    min_words: Annotated[StrictInt | None, Field(ge=0, le=20_000)] = Field(
        None, description="At least about this many words."
    )
    short: Literal["keep", "write"] = Field(
        "keep", description="keep: return a document no longer than its summary. write: return the summary."
    )
    instruction: Annotated[StrictStr | None, Field(max_length=2000)] = Field(
        None, description="Text before each document; only for the mode abstract."
    )
    beams: Annotated[StrictInt | None, Field(ge=1, le=128)] = Field(
        None,
        description="Beam width, at most max_beams of /v1/models; 1 is fastest. Default: the server's own.",
    )
    support: StrictBool = Field(False, description="Show the passages behind each sentence, and marks.")
    stream: StrictBool = Field(False, description="Send each sentence as a server-sent event.")

    @model_validator(mode="before")
    @classmethod
    def _has_no_unknown_field(cls, value: Any) -> Any:
        names = value if isinstance(value, dict) else ()
        unknown = next((name for name in names if name not in cls.model_fields), None)
        if unknown is not None:
            problem = "unknown field {name}; /openapi.json lists the fields"
            raise PydanticCustomError("extra_forbidden", problem, {"name": repr(unknown[:50])})
        return value


class Passage(BaseModel):
    """Characters `start` to `end` of the document (Unicode code points)."""

    start: int
    end: int
    text: str


class Mark(BaseModel):
    """Characters of the summary that do not seem to occur in the document. A hint, not a verdict."""

    start: int
    end: int
    kind: str
    text: str
    reason: str


class Sentence(BaseModel):
    """A sentence of the summary, with its offsets."""

    start: int
    end: int
    text: str
    support: list[Passage] | None = None
    marks: list[Mark] | None = None
    part: str | None = None
    heading: str | None = None
    time: str | None = None
    speaker: str | None = None
    turn: int | None = None
    owner: str | None = None
    due: str | None = None
    origin: Literal["written", "quoted"] | None = None
    reason: str | None = None


class Read(BaseModel):
    """The part of the document that the model read."""

    document_tokens: int
    tokens_read: int
    complete: bool
    how: str
    pieces: int
    note: str


class OneSummary(BaseModel):
    """The summary of one document."""

    index: int
    summary: str
    sentences: list[Sentence]
    mode: str
    type: str
    answered: bool
    read: Read
    words: int
    summary_tokens: int
    finished: bool
    kept: bool
    unchecked: dict[str, str] | None = None
    adapted: bool | None = None


class Failed(BaseModel):
    """The error for one document of a list."""

    index: int
    error: dict[str, Any]


class ReadDocument(BaseModel):
    """The text of a file; `notes` name what is left out of it."""

    name: str
    text: str
    notes: list[str]


class DocumentsAnswer(BaseModel):
    """The files of a request, in order."""

    documents: list[ReadDocument]


class SummarizeAnswer(BaseModel):
    """The summaries in the order of the documents; `documents` only for files."""

    id: str
    model: str
    documents: list[ReadDocument] | None = None
    summaries: list[OneSummary | Failed]
