"""A collector that takes OTLP over HTTP and decodes what it was sent."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Self

import uvicorn
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    def __init__(self) -> None:
        self.traces: list[Any] = []
        self.metrics: list[Any] = []

    def __enter__(self) -> Self:
        config = uvicorn.Config(
            self.app, port=0, lifespan="off", interface="asgi3", log_level="error"
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            self._thread.join(0.01)
        self.url = f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, *error: object) -> None:
        self._server.should_exit = True
        self._thread.join()

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        assert dict(scope["headers"])[b"content-type"] == b"application/x-protobuf"
        match scope["path"]:
            case "/v1/traces":
                self.traces.append(ExportTraceServiceRequest.FromString(body))
            case "/v1/metrics":
                self.metrics.append(ExportMetricsServiceRequest.FromString(body))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    @property
    def spans(self) -> list[Any]:
        return [
            span
            for request in list(self.traces)
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def span(self, name: str) -> Any:
        return next((span for span in self.spans if span.name == name), None)

    def resources(self) -> list[dict[str, Any]]:
        return [
            plain(resource.resource.attributes)
            for request in list(self.traces)
            for resource in request.resource_spans
        ]

    def points(self, name: str) -> Iterator[Any]:
        """All points of a metric, of the newest export last."""
        for request in list(self.metrics):
            for resource in request.resource_metrics:
                for scope in resource.scope_metrics:
                    for metric in scope.metrics:
                        if metric.name == name:
                            yield from getattr(metric, metric.WhichOneof("data")).data_points


def plain(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}
