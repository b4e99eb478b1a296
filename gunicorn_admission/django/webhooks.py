"""
A Django view that takes webhooks in: ``POST /hooks/<source>``.

In ``urls.py``::

    from gunicorn_admission.django.webhooks import webhook_view

    urlpatterns = [path("hooks/<slug:source>", webhook_view())]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.request import RawPostDataException
from django.views.decorators.csrf import csrf_exempt

from gunicorn_admission.webhooks.intake import Intake, Source
from gunicorn_admission.webhooks.intake.app import store_url
from gunicorn_admission.webhooks.intake.body import Incomplete, TooLarge, read_body
from gunicorn_admission.webhooks.store import Store

__all__ = ["webhook_view"]

#: Name in Django's settings of the store's URL.
_STORE: Final = "WEBHOOKS_STORE_URL"


def webhook_view(
    store: Store | str | None = None, sources: Iterable[Source] = (), **options: Any
) -> Callable[..., HttpResponse]:
    """
    Make the view; it is exempt from CSRF checks, since it checks signatures.

    Args:
        store: Where events are kept, or its URL. By default ``WEBHOOKS_STORE_URL`` in Django's
            settings, or the environment's ``GUNICORN_ADMISSION_STORE_URL``.
        sources: Configured in code; more may be in the store.
        options: Of :class:`~gunicorn_admission.webhooks.intake.Receiver`; ``prefix`` is the path
            in front of the source's name, and tells admission which paths these are.

    Raises:
        ConfigError: A source or secret cannot work.
    """
    intake = Intake(store or getattr(settings, _STORE, None) or store_url(), sources, **options)

    def webhook(request: HttpRequest, source: str) -> HttpResponse:
        """Take one request in."""

        def read(largest: int, patience: float) -> bytes:
            return _raw_body(request, largest, patience)

        answer = intake.receive(source, request.META, read)
        response = HttpResponse(answer.body, status=answer.status)
        for name, value in answer.headers:
            response.headers[name] = value
        response.headers["Content-Length"] = str(len(answer.body))
        return response

    exempt: Callable[..., HttpResponse] = csrf_exempt(webhook)
    return exempt


def _raw_body(request: HttpRequest, largest: int, patience: float) -> bytes:
    """
    Return the bytes that came.

    They are taken from the server where nobody has read them yet: Django's own reading takes no
    chunked bodies, and turns those above ``DATA_UPLOAD_MAX_MEMORY_SIZE`` into an error 400.
    """
    touched = vars(request)
    untouched = "_body" not in touched and not touched.get("_read_started")
    if untouched and "wsgi.input" in request.META:
        return read_body(request.META, largest, patience)
    try:
        body: bytes = request.body
    except RawPostDataException:  # a middleware parsed a form, and left nothing
        raise Incomplete(0, None) from None
    if len(body) > largest:
        raise TooLarge
    return body
