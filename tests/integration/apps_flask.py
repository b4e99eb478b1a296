"""A Flask application with decorated views that wait at file locks; served by ``server.py``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flask import Blueprint, Flask, Response, request, send_file, stream_with_context

from flask_ext import Admission
from tests.flask_apps import told
from tests.integration import apps_admission
from tests.integration.apps import record, wait_at

__all__ = ["admission", "create_app"]

admission = Admission()
shop = Blueprint("shop", __name__, url_prefix="/shop")


def block(gate: str) -> dict[str, Any]:
    """Wait at a gate; then what admission left in the environ."""
    record("call", request.environ)
    wait_at(gate)
    return told()


@shop.route("/<int:number>")
@admission.priority("high")
def by_number(number: int) -> dict[str, Any]:
    """A view that only the routing tells from the next one."""
    return told()


@shop.route("/<name>")
def by_name(name: str) -> dict[str, Any]:
    """See above."""
    return told()


def create_app(**config: Any) -> Flask:
    """Make the application; the extension is added before its views."""
    app = Flask("shop")
    app.config.from_mapping(config)
    admission.init_app(app)
    app.register_blueprint(shop)
    app.add_url_rule("/block/<gate>", "block", block)

    @app.route("/analytics/<int:day>")
    @admission.priority("low")
    def analytics(day: int) -> dict[str, Any]:
        return told()

    @admission.priority("high")
    @app.route("/payments/<gate>", methods=["POST"])
    def payments(gate: str) -> dict[str, Any]:
        return block(gate)

    @app.route("/alive")
    @admission.exempt
    def alive() -> dict[str, Any]:
        return told()

    @app.route("/capped/<gate>")
    @admission.cap(1)
    def capped(gate: str) -> dict[str, Any]:
        return block(gate)

    @app.route("/db/<gate>")
    def db(gate: str) -> dict[str, Any]:
        with admission.dependency("db", cap=1, timeout="0ms"):
            return block(gate)

    @app.route("/stream/<gate>")
    @admission.stream
    def stream(gate: str) -> Response:
        def chunks() -> Iterator[str]:
            yield "head\n"
            wait_at(gate)
            yield f"{request.path}\n"

        return Response(stream_with_context(chunks()), mimetype="text/plain")

    @app.route("/file")
    def file() -> Response:
        return send_file(Path(__file__))

    @app.route("/fail")
    def fail() -> str:
        raise RuntimeError("a bug")

    @app.route("/admission")
    @admission.exempt
    def numbers() -> dict[str, Any]:
        return apps_admission.statistics()

    return app


app = create_app()
