"""Examples for the OpenAPI schema: answers to one document, built by the same code as all answers."""

from __future__ import annotations

from typing import Any

from precis.generation.summarizer import Summary

TEXT = (
    "The harbour of Elm was closed on Monday. A storm had damaged two cranes. "
    "Repairs take a week, the port office said. Ferries leave from Oak until then."
)
SUMMARY = Summary(
    text="The harbour of Elm was closed on Monday.",
    document_tokens=38,
    tokens_read=38,
    summary_tokens=10,
    mode="extract",
    places=((0, 40),),
)


def shown(whole: dict[str, Any], events: str) -> dict[int | str, dict[str, Any]]:
    """Return the schema entry of a route's answers: as JSON, and as a stream of events."""
    return {
        200: {
            "description": "The answer; with `stream`, events.",
            "content": {"application/json": {"example": whole}, "text/event-stream": {"example": events}},
        }
    }
