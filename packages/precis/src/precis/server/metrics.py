"""Counters of the service for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.005, 0.02, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """The counters of one service, in their own registry."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"precis_{name}", text, labels, registry=self._registry)

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"precis_{name}", text, registry=self._registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"precis_{name}", text, labels, buckets=buckets, registry=self._registry)

        self._requests = counter("requests", "Requests, by route and status.", "route", "status")
        self._request_seconds = histogram(
            "request_seconds", "Seconds from request to answer.", _SECONDS, "route"
        )
        self._documents = counter("documents", "Documents summarized, by mode.", "mode")
        self._read = counter("tokens_read", "Document tokens read by the model.")
        self._written = counter("tokens_written", "Summary tokens written.")
        self._dropped = counter("dropped", "Documents without a summary, by reason.", "reason")
        self._queue_documents = gauge("queue_documents", "Documents queued or running.")
        self._queue_tokens = gauge("queue_tokens", "Estimated tokens of these documents.")
        self._batch = histogram("batch_documents", "Documents per batch.", (1, 2, 4, 8, 16, 32, 64))
        self._batch_seconds = histogram("batch_seconds", "Seconds per batch.", _SECONDS)

    def request(self, route: str, status: int, seconds: float) -> None:
        """Record an answered request."""
        self._requests.labels(route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def summarized(self, mode: str, *, read: int, written: int) -> None:
        """Record a summarized document."""
        self._documents.labels(mode).inc()
        self._read.inc(read)
        self._written.inc(written)

    def queued(self, documents: int, tokens: int) -> None:
        """Record the documents and tokens that are queued or running."""
        self._queue_documents.set(documents)
        self._queue_tokens.set(tokens)

    def batch(self, documents: int, seconds: float) -> None:
        """Record a finished batch."""
        self._batch.observe(documents)
        self._batch_seconds.observe(seconds)

    def dropped(self, reason: str) -> None:
        """Record a document without a summary."""
        self._dropped.labels(reason).inc()

    def text(self) -> bytes:
        """Return all counters in Prometheus's text format."""
        return generate_latest(self._registry)
