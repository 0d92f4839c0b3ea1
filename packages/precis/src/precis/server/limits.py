"""Limits of the service, checked before any work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from precis.server.token_counter import TokenCounter
from precis_text.config import Settings
from precis_text.errors import UserError

_BODIES = 16  # bodies of the largest size that are in memory at once
_BODY_GRACE = 10.0  # seconds before the least rate of a body counts


class ApiError(Exception):
    """A refused request, with the error that answers it.

    Attributes:
        status: the HTTP status.
        code: a short name that programs can compare.
        param: the invalid field.
        retry_after: seconds after which the client may retry.
        document: the number of the document that it is about, from 1.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        param: str | None = None,
        retry_after: int | None = None,
        document: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.param = status, code, message, param
        self.retry_after, self.document = retry_after, document

    def of(self, names: Sequence[str], index: int | None = None) -> ApiError:
        """Return this error with the name of the file that document `index`, or else `document`, comes from.

        Args:
            names: those of all documents; empty if they do not come from files.
        """
        place = index if self.document is None else self.document - 1
        if place is None or not names:
            return self
        message = f"{names[place] or 'the file'}: {self.message}"
        return ApiError(self.status, self.code, message, param=self.param, retry_after=self.retry_after)


def server_failed() -> ApiError:
    """Return the error for a bug of the service, a new one each time, since an exception keeps its frames."""
    return ApiError(500, "internal_error", "the server failed; its log says why")


def empty_document(number: int, *, param: str | None = None) -> ApiError:
    """Return the error for an empty document; `number` counts from 1."""
    return ApiError(422, "empty_document", f"document {number} is empty", param=param, document=number)


@dataclass(frozen=True, kw_only=True)
class Limits(Settings):
    """Limits of one service.

    Attributes:
        body: bytes of a request.
        files: bytes of a request that carries files.
        documents: documents in one request.
        tokens: tokens of one document.
        queue: tokens of all queued and running documents.
        seconds: time from the arrival of a request to its answer.
        rate: least bytes a second of a body, after its first ten seconds.
        pause: most seconds between two parts of a body.
        batch: documents in a batch of written summaries.
        together: tokens of documents in a batch of extracts.
        per_minute: requests of one key in a minute; 0 for no limit.
        beams: widest beam search that a request may ask for.
    """

    body: int = 4 << 20
    files: int = 32 << 20
    documents: int = 64
    tokens: int = 131_072
    queue: int = 524_288
    seconds: float = 300.0
    rate: int = 16_384
    pause: float = 10.0
    batch: int = 8
    together: int = 4096
    per_minute: int = 0
    beams: int = 4

    def __post_init__(self) -> None:
        if self.queue < self.tokens:
            raise UserError(
                f"a queue of {self.queue:,} tokens is too small for a document of {self.tokens:,}; "
                "make --queue-tokens at least as large as --max-tokens"
            )

    @property
    def all_bodies(self) -> int:
        """Maximum bytes of all requests together."""
        return max(_BODIES * self.body, 2 * self.files)

    def body_due(self, count: int) -> float:
        """Return the seconds after a request's head at which more than `count` bytes of its body must be there."""
        return min(self.seconds, _BODY_GRACE + count / self.rate)

    def body_of(self, content_type: bytes) -> int:
        """Return the most bytes of a request whose body is of this type."""
        return self.files if content_type.lower().startswith(b"multipart/form-data") else self.body

    def check(self, texts: Sequence[str], counter: TokenCounter, *, param: str) -> None:
        """Refuse documents by what is known without their tokens.

        Raises:
            ApiError: if there are too many documents, all are empty, or one is not text or certainly too long.
        """
        if len(texts) > self.documents:
            problem = (
                f"{len(texts):,} documents exceed the limit of {self.documents:,}; send fewer in a request"
            )
            raise ApiError(413, "too_many_documents", problem, param=param)
        if not any(text.strip() for text in texts):
            raise empty_document(1, param=param)
        for number, text in enumerate(texts, start=1):
            try:
                text.encode()
            except UnicodeEncodeError:
                problem = f"document {number} contains half of a character (a lone surrogate)"
                raise ApiError(422, "not_text", problem, param=param, document=number) from None
        self.check_tokens([counter.at_least(text) for text in texts], param=param, known="at least ")

    def check_tokens(self, counts: Sequence[int], *, param: str, known: str = "") -> None:
        """Refuse documents by their tokens; raise `ApiError` if one is too long, or all of them exceed the queue."""
        for number, count in enumerate(counts, start=1):
            if count > self.tokens:
                problem = (
                    f"document {number} has {known}{count:,} tokens; this server accepts {self.tokens:,}"
                )
                raise ApiError(413, "document_too_long", problem, param=param, document=number)
        if sum(counts) > self.queue:  # a retry would not help
            problem = f"the documents have {known}{sum(counts):,} tokens; this server accepts {self.queue:,} at a time"
            raise ApiError(413, "documents_too_long", f"{problem}; send fewer in a request", param=param)
