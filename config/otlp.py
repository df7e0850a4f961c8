"""OpenTelemetry's spans and metrics of what this process did, sent by its own exporters.

A thread takes spans that have ended (core/telemetry.py) and reads figures; the exporters send from
threads of theirs. A collector that is away costs no call anything.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import orjson
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)
from prometheus_client.metrics_core import Metric

from config.process_figures import read_figures
from core import telemetry
from core.process import process_name, role
from core.telemetry import OpenSpan
from gateway.dispatch.dispatch import KNOWN_METHODS

log = logging.getLogger(__name__)

TAKE_EVERY_S = 0.5
NAME = "countersign"
# Seconds, as the conventions for MCP have them.
BOUNDS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300]
# Methods that agents make up would each be a series.
OTHER = "_OTHER"
MEASURED = (
    "mcp.method.name",
    "mcp.protocol.version",
    "gen_ai.operation.name",
    "network.transport",
)
_KINDS = {"server": SpanKind.SERVER, "client": SpanKind.CLIENT}


class GivenIds(IdGenerator):
    """The ids of the span that is made now: they were told to a server before."""

    span_id = trace_id = 0

    def generate_span_id(self) -> int:
        return self.span_id

    def generate_trace_id(self) -> int:
        return self.trace_id


class Exporter:
    """Used by one thread."""

    def __init__(self, url: str) -> None:
        self._ids = GivenIds()
        resource = _resource()
        self._traces = TracerProvider(
            resource=resource, id_generator=self._ids, shutdown_on_exit=False
        )
        sending = OTLPSpanExporter(endpoint=f"{url}/v1/traces")
        self._traces.add_span_processor(BatchSpanProcessor(sending))
        self._tracer = self._traces.get_tracer(NAME)
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=f"{url}/v1/metrics"))
        meters = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
        meter = meters.get_meter(NAME)
        self._durations = {
            kind: meter.create_histogram(
                f"mcp.{kind}.operation.duration",
                unit="s",
                explicit_bucket_boundaries_advisory=BOUNDS,
            )
            for kind in ("server", "client")
        }
        _observe(meter)

    def samples(self, trace_id: int) -> bool:
        """Whether a trace that begins here is kept (OTEL_TRACES_SAMPLER)."""
        found = self._traces.sampler.should_sample(None, trace_id, "")
        return found.decision is Decision.RECORD_AND_SAMPLE

    def run(self) -> None:
        while True:
            time.sleep(TAKE_EVERY_S)
            while telemetry.ended:
                try:
                    self._export(telemetry.ended.popleft())
                except Exception:
                    # The thread is the only one: the next span is exported all the same.
                    log.exception("a span could not be exported")

    def _export(self, span: OpenSpan) -> None:
        error = span.error or _error_in(span.reply)
        attributes: dict[str, str | int] = dict(span.attributes)
        if error:
            attributes["error.type"] = error
        seconds = (span.ended_ns - span.began_ns) / 1e9
        measured = {name: attributes[name] for name in MEASURED if name in attributes}
        if measured["mcp.method.name"] not in KNOWN_METHODS:
            measured["mcp.method.name"] = OTHER
        if error:
            measured["error.type"] = error
        self._durations[span.kind].record(seconds, measured)
        if span.is_sampled:
            self._make(span, attributes, error)

    def _make(self, span: OpenSpan, attributes: dict[str, Any], error: str) -> None:
        self._ids.span_id, self._ids.trace_id = span.span_id, span.trace_id
        made = self._tracer.start_span(
            span.name,
            context=_parent(span),
            kind=_KINDS[span.kind],
            attributes=attributes,
            start_time=span.began_ns,
        )
        if error:
            made.set_status(Status(StatusCode.ERROR))
        made.end(span.ended_ns)


def export_on(url: str) -> None:
    """For as long as this process lives."""
    exporter = Exporter(url)
    telemetry.switch_on(exporter.samples)
    threading.Thread(target=exporter.run, name="telemetry", daemon=True).start()


def _resource() -> Resource:
    own = {"service.instance.id": process_name(), "countersign.role": role()}
    if not os.environ.get("OTEL_SERVICE_NAME"):
        own["service.name"] = NAME
    return Resource.create(own)


def _parent(span: OpenSpan) -> Any:
    if not span.parent_id:
        return None
    context = SpanContext(
        span.trace_id,
        span.parent_id,
        is_remote=not span.is_local,
        trace_flags=TraceFlags(span.is_sampled),
    )
    return set_span_in_context(NonRecordingSpan(context))


def _error_in(reply: bytes) -> str:
    """By the conventions: the code of a JSON-RPC error, or that a tool's result is one."""
    if not reply:
        return ""
    try:
        said = orjson.loads(reply)
    except orjson.JSONDecodeError:
        return ""
    if "error" in said:
        return str(said["error"].get("code", ""))
    result = said.get("result")
    return "tool_error" if isinstance(result, dict) and result.get("isError") else ""


def _observe(meter: Any) -> None:
    """The same figures as /metrics has of this process, but for its histograms."""
    for family in read_figures():
        create = {
            "gauge": meter.create_observable_gauge,
            "counter": meter.create_observable_counter,
        }.get(family.type)
        if create is not None:
            create(family.name, [_reader(family.name)], description=family.documentation)


def _reader(name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def read(_options: CallbackOptions) -> Iterator[Observation]:
        for family in read_figures():
            if family.name == name:
                yield from _observations(family)

    return read


def _observations(family: Metric) -> Iterator[Observation]:
    for sample in family.samples:
        if not sample.name.endswith("_created"):
            yield Observation(sample.value, sample.labels)
