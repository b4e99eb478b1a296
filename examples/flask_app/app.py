"""
A Flask shop that says what matters, and bounds what its views call.

``?seconds=2`` lets the database of this example take that long, as a slow one would.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from flask import Flask, Response, request

from flask_ext import Admission, dependency_rejected
from gunicorn_admission import Priority, Rejected

admission = Admission()
database = admission.dependency("database", cap=4, timeout="50ms")
remembered: dict[int, str] = {}


@database
def query(text: str) -> str:
    """Ask the database; at most four queries run at once, however many threads there are."""
    time.sleep(min(request.args.get("seconds", 0.0, type=float), 30.0))
    return text


def create_app() -> Flask:
    """Make the application."""
    app = Flask(__name__)
    admission.init_app(app)

    @app.post("/payments/<int:order>")
    @admission.priority("high")
    def payments(order: int) -> dict[str, str]:
        return {"paid": query(f"order {order}")}

    @app.get("/orders/<int:order>")
    def orders(order: int) -> dict[str, str]:
        # The database has no room for it? An answer from memory is better than none.
        try:
            remembered[order] = query(f"order {order}")
        except Rejected:
            if order not in remembered:
                raise  # becomes an honest 503
        return {"order": remembered[order]}

    @app.get("/reports/<path:name>")
    @admission.priority("low")
    @admission.cap(3)
    def reports(name: str) -> dict[str, str]:
        return {"report": query(name)}

    @app.get("/export")
    @admission.stream
    def export() -> Response:
        def lines() -> Iterator[str]:
            for number in range(5):
                yield f"{number}\n"
                time.sleep(0.01)

        return Response(lines(), mimetype="text/plain")

    @app.get("/about")
    def about() -> str:
        return "Needs no database, so it goes on while that hangs.\n"

    @app.get("/alive")
    @admission.exempt
    def alive() -> str:
        return "yes\n"

    @app.get("/numbers")
    @admission.exempt
    def numbers() -> dict[str, Any]:
        seen = admission.statistics()
        called = seen.dependencies["database"]
        return {
            "requests": seen.requests
            and {
                "limit": seen.requests.limit,
                "inflight": seen.requests.inflight,
                "refused": seen.requests.shed_total,
            },
            "database": {
                "limit": called.limit,
                "inflight": called.inflight,
                "refused": called.shed_total,
            },
        }

    @dependency_rejected.connect_via(app)
    def note(sender: Flask, name: str, priority: Priority, **_: Any) -> None:
        sender.logger.info("%s has no room for a %s request", name, priority.name.lower())

    app.extensions["receivers"] = [note]  # signals hold their receivers weakly
    return app


app = create_app()
