"""The latest estimate as Prometheus gauges over HTTP."""

from __future__ import annotations

from typing import Any, Self

from trueup.extras import needed_by
from trueup.monitoring import MSEEstimate
from trueup_mlflow.write.monitor_items import ESTIMATED, of_metric


class PrometheusExporter:
    """Serve the latest estimate of a model until the block ends.

    Its URI is the label ``model`` of the gauges. The port is on the loopback address; 0 takes a
    free one, which is then in ``port``.

    Raises
    ------
    ImportError
        If ``prometheus_client`` is missing.
    """

    def __init__(self, model_uri: str, port: int) -> None:
        with needed_by("The Prometheus exporter"):
            from prometheus_client import CollectorRegistry, start_http_server
        self._registry = CollectorRegistry()
        self._gauges: dict[str, list[Any]] = {}
        self._model = model_uri
        self._server, self._thread = start_http_server(port, "127.0.0.1", self._registry)
        self.port = int(self._server.server_port)

    def show(self, estimate: MSEEstimate) -> None:
        """Set the gauges of the estimate's metric."""
        name = of_metric(ESTIMATED, estimate.metric)
        gauges = self._gauges.setdefault(name, []) or self._made(name)
        values = (estimate.value, estimate.low, estimate.high, float(estimate.trusted))
        for gauge, value in zip(gauges, values, strict=True):
            gauge.labels(self._model).set(value)

    def _made(self, name: str) -> list[Any]:
        from prometheus_client import Gauge

        texts = {
            "": "Estimated error of the latest batch",
            "_low": "Low end of its 90% interval",
            "_high": "High end of its 90% interval",
            "_trusted": "1 if the estimate is to be trusted",
        }
        self._gauges[name] = [
            Gauge(f"trueup_{name}{end}", text, ["model"], registry=self._registry)
            for end, text in texts.items()
        ]
        return self._gauges[name]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
