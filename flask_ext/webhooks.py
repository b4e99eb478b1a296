"""
Webhooks in a Flask application: ``POST /hooks/<source>``, beside its own views.

The body is taken from the server as soon as the request is routed, before any hook of the
application can parse it, and what is read there is put back for whoever reads after.
"""

from __future__ import annotations

import functools
import inspect
import io
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from flask import Blueprint, Flask, Request, Response, current_app, request

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.fanout import Consumers
from gunicorn_admission.webhooks.intake import Intake, Source
from gunicorn_admission.webhooks.intake.app import store_url
from gunicorn_admission.webhooks.intake.body import Incomplete, TooLarge, read_body
from gunicorn_admission.webhooks.store import Store

__all__ = ["Webhooks"]

Handler = TypeVar("Handler", bound=Callable[..., object])

_KEY: Final = "webhooks"
_NAME: Final = "gunicorn_admission_webhooks"
_BODY: Final = "gunicorn_admission.webhook.body"
_METHODS: Final = ["POST", "GET", "PUT", "PATCH", "DELETE"]  # all get our answer, not Flask's


class Webhooks:
    """
    Takes webhooks in, verifies and stores them, in any number of applications.

    Args:
        app: The application; without one, call :meth:`init_app`.
        store: Where events are kept, or its URL. By default ``WEBHOOKS_STORE_URL`` in
            ``app.config``, or the environment's ``GUNICORN_ADMISSION_STORE_URL``.
        sources: Configured in code; more may be in the store.
        url_prefix: Path in front of the source's name.
        options: Of :class:`~gunicorn_admission.webhooks.intake.Receiver`.

    Attributes:
        consumers: What :meth:`consumer` registered; ``gunicorn-admission worker`` runs them.

    Raises:
        ConfigError: A source or secret cannot work.

    Example:
        ``Webhooks(app, sources=[Source("git", provider="github", secrets=["env:GIT_SECRET"])])``
    """

    def __init__(
        self,
        app: Flask | None = None,
        *,
        store: Store | str | None = None,
        sources: Iterable[Source] = (),
        url_prefix: str = "/hooks",
        **options: Any,
    ) -> None:
        self._store = store
        self._sources = tuple(sources)
        self._prefix = url_prefix
        self._options = options
        self._apps: weakref.WeakSet[Flask] = weakref.WeakSet()
        self.consumers = Consumers()
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask, *, mount: str = "") -> None:
        """
        Let an application take webhooks in.

        Args:
            app: Its ``config`` is read now.
            mount: Path below which the application is mounted in the server, such as ``"/api"``,
                so that admission in front of it knows the paths.

        Raises:
            ConfigError: It takes them in already, or a source cannot work.
        """
        if _KEY in app.extensions:
            raise ConfigError(
                "init_app", app.name, "an application without Webhooks",
                "make one Webhooks, and give it all sources",
            )  # fmt: skip
        store = self._store or app.config.get("WEBHOOKS_STORE_URL") or store_url()
        intake = Intake(store, self._sources, prefix=mount + self._prefix, **self._options)
        blueprint = Blueprint(_NAME, __name__, url_prefix=self._prefix)
        blueprint.add_url_rule("/<source>", "receive", _receive, methods=_METHODS)
        app.register_blueprint(blueprint)
        app.extensions[_KEY] = intake
        self._apps.add(app)
        # Before any hook of the application: one that looks at request.form would eat the body.
        app.url_value_preprocessors[None].insert(0, _take_body)
        protection = app.extensions.get("csrf")  # Flask-WTF; no sender has such a token
        if protection is not None and hasattr(protection, "exempt"):
            protection.exempt(blueprint)

    def consumer(self, name: str, **options: Any) -> Callable[[Handler], Handler]:
        """
        Register the decorated function as what performs the effect of a subscription.

        It runs in a worker and never in a request, inside the application's context where this
        object has one application.

        Args:
            name: Of the subscription.
            options: Of :meth:`gunicorn_admission.webhooks.fanout.Consumers.consumer`.

        Raises:
            ConfigError: A value cannot work, or the name is taken.
        """

        def register(handler: Handler) -> Handler:
            self.consumers.consumer(name, **options)(self._in_context(handler))
            return handler

        return register

    def _in_context(self, handler: Callable[..., object]) -> Callable[..., object]:
        if inspect.iscoroutinefunction(handler):
            return handler  # which the registry refuses

        @functools.wraps(handler)
        def run(*arguments: Any) -> object:
            if len(self._apps) != 1:
                return handler(*arguments)
            with next(iter(self._apps)).app_context():
                return handler(*arguments)

        return run


def _intake() -> Intake:
    intake: Intake = current_app.extensions[_KEY]
    return intake


def _take_body(endpoint: str | None, values: dict[str, Any] | None) -> None:
    if endpoint != f"{_NAME}.receive":
        return
    environ = request.environ
    ready = _intake().receiver.peek((values or {})["source"])
    if ready is None or request.method != "POST":
        return  # answered without its body
    try:
        environ[_BODY] = body = _raw_body(request, ready.source.largest, ready.source.patience)
    except (TooLarge, Incomplete) as error:
        environ[_BODY] = error
        return
    environ["wsgi.input"] = io.BytesIO(body)
    environ["wsgi.input_terminated"] = True


def _raw_body(request: Request, largest: int, patience: float) -> bytes:
    """
    Return the bytes that came, also where something has read them through Flask already.

    The application's own ``MAX_CONTENT_LENGTH`` is not looked at: the source's bound holds.
    """
    touched = vars(request)
    if "_cached_data" in touched:
        return request.get_data()
    if "stream" not in touched:
        return read_body(request.environ, largest, patience)
    body = request.stream.read()  # somebody asked for the stream, or for a form that is none
    if not body and request.content_length != 0:
        raise Incomplete(0, request.content_length)
    return body


def _receive(source: str) -> Response:
    def read(largest: int, patience: float) -> bytes:
        found = request.environ.get(_BODY)
        if isinstance(found, Exception):
            raise found
        return found if isinstance(found, bytes) else _raw_body(request, largest, patience)

    answer = _intake().receive(source, request.environ, read)
    response = Response(answer.body, answer.status)
    response.headers.clear()
    response.headers.extend(answer.headers)
    response.content_length = len(answer.body)
    return response
