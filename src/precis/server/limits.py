"""What the service takes, and what it refuses before any work is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from precis.config import Settings
from precis.errors import UserError

_BYTES_A_TOKEN = 4  # of UTF-8, about: limits are checked before anything is tokenized


class Refused(Exception):  # noqa: N818 (an answer, not a failure)
    """A request that gets an error as its answer.

    Attributes:
        status: the HTTP status.
        code: a short name that programs can compare.
        param: the field that it is about.
        retry_after: seconds after which the same request may be taken.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        param: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.param = status, code, message, param
        self.retry_after = retry_after


def server_failed() -> Refused:
    """What a client is told of a fault of ours. A new one each time: an exception keeps the frames that it passed."""
    return Refused(500, "internal_error", "the server failed; its log says why")


@dataclass(frozen=True, kw_only=True)
class Limits(Settings):
    """Limits of one service.

    Attributes:
        body: bytes of a request.
        documents: documents in one request.
        tokens: estimated tokens of one document; see `estimated_tokens`.
        queue: estimated tokens of all documents that wait or are in work.
        seconds: from the arrival of a request to its answer.
        batch: documents that are written together.
        together: estimated tokens of documents whose sentences are chosen together.
        per_minute: requests of one key in a minute; 0 for any number.
    """

    body: int = 4 << 20
    documents: int = 64
    tokens: int = 131_072
    queue: int = 524_288
    seconds: float = 300.0
    batch: int = 8
    together: int = 4096
    per_minute: int = 0

    def __post_init__(self) -> None:
        if self.queue < self.tokens:
            raise UserError(
                f"a queue of {self.queue:,} tokens never takes a document of {self.tokens:,}; "
                "make --queue-tokens as large as --max-tokens"
            )

    @property
    def all_bodies(self) -> int:
        """Bytes of all requests together."""
        return 16 * self.body

    def check(self, texts: Sequence[str], *, param: str) -> list[int]:
        """Return the estimated tokens of each document.

        Raises:
            Refused: there are too many documents, one is too long or has no text, or all are more than ever wait.
        """
        if len(texts) > self.documents:
            raise Refused(
                413,
                "too_many_documents",
                f"{len(texts):,} documents are more than {self.documents:,}",
                param=param,
            )
        costs = []
        for number, text in enumerate(texts, start=1):
            if len(text) // _BYTES_A_TOKEN > self.tokens:  # without looking at it
                raise self._too_long(number, len(text) // _BYTES_A_TOKEN, param)
            if not text.strip():
                raise Refused(422, "empty_document", f"document {number} is empty", param=param)
            try:
                cost = estimated_tokens(text)
            except UnicodeEncodeError:
                problem = f"document {number} has half of a character (a lone surrogate)"
                raise Refused(422, "not_text", problem, param=param) from None
            if cost > self.tokens:
                raise self._too_long(number, cost, param)
            costs.append(cost)
        if sum(costs) > self.queue:  # to come again would not help
            problem = (
                f"the documents have about {sum(costs):,} tokens; this server takes {self.queue:,} at a time"
            )
            raise Refused(413, "documents_too_long", f"{problem}; send fewer in a request", param=param)
        return costs

    def _too_long(self, number: int, cost: int, param: str) -> Refused:
        return Refused(
            413,
            "document_too_long",
            f"document {number} has about {cost:,} tokens; this server takes {self.tokens:,}",
            param=param,
        )


def estimated_tokens(text: str) -> int:
    """Estimate tokens from bytes alone: one for four bytes of UTF-8.

    Raises:
        UnicodeEncodeError: the text has a lone surrogate.
    """
    return len(text.encode()) // _BYTES_A_TOKEN + 1
