"""Counters of the service in the form that Prometheus reads."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.005, 0.02, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """The counters of one service, in a registry of their own."""

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
            "request_seconds", "From a request to its answer.", _SECONDS, "route"
        )
        self._documents = counter("documents", "Documents summarized, by mode.", "mode")
        self._read = counter("tokens_read", "Tokens of documents that the model read.")
        self._written = counter("tokens_written", "Tokens of summaries.")
        self._dropped = counter("dropped", "Documents without a summary, by reason.", "reason")
        self._queue_documents = gauge("queue_documents", "Documents that wait or are in work.")
        self._queue_tokens = gauge("queue_tokens", "Their estimated tokens.")
        self._batch = histogram("batch_documents", "Documents of a batch.", (1, 2, 4, 8, 16, 32, 64))
        self._batch_seconds = histogram("batch_seconds", "Seconds of a batch.", _SECONDS)

    def request(self, route: str, status: int, seconds: float) -> None:
        """A request has its answer."""
        self._requests.labels(route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def summarized(self, mode: str, *, read: int, written: int) -> None:
        """A document has its summary."""
        self._documents.labels(mode).inc()
        self._read.inc(read)
        self._written.inc(written)

    def queued(self, documents: int, tokens: int) -> None:
        """So many documents and tokens wait or are in work."""
        self._queue_documents.set(documents)
        self._queue_tokens.set(tokens)

    def batch(self, documents: int, seconds: float) -> None:
        """A batch is done."""
        self._batch.observe(documents)
        self._batch_seconds.observe(seconds)

    def dropped(self, reason: str) -> None:
        """A document was not summarized."""
        self._dropped.labels(reason).inc()

    def text(self) -> bytes:
        """All of them, as Prometheus reads them."""
        return generate_latest(self._registry)
