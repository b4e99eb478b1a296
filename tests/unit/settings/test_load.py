"""Loading: who beats whom, where each value came from, and that no typo passes in silence."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings import Settings, Source, load, locate

PLACES = ["keyword", "conf", "environ", "toml"]


@pytest.fixture(autouse=True)
def empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(text: str, name: str = "gunicorn_admission.toml") -> Path:
    file = Path(name)
    file.write_text(text, "utf-8")
    return file


def environ(**values: str) -> dict[str, str]:
    return {f"GUNICORN_ADMISSION_{name.upper()}": value for name, value in values.items()}


def refused(*args: Any, **kwargs: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(*args, **kwargs)
    return caught.value


def test_nothing_given_is_the_defaults() -> None:
    settings, sources = load()
    assert settings == Settings()
    assert {str(source) for source in sources.values()} == {"default"}


@pytest.mark.parametrize("first", range(len(PLACES)), ids=PLACES)
def test_precedence(first: int) -> None:
    write("[gunicorn_admission]\nmax_queue = 4\n")
    given: list[dict[str, Any]] = [
        {"kwargs": {"max_queue": 1}},
        {"conf": {"admission_max_queue": 2}},
        {"environ": environ(max_queue="3")},
        {},
    ]
    merged: dict[str, Any] = {}
    for place in given[first:]:
        merged |= place
    settings, sources = load(**merged)
    assert settings.max_queue == first + 1
    assert (
        str(sources["max_queue"])
        == [
            "keyword argument max_queue",
            "gunicorn config admission_max_queue",
            "environment GUNICORN_ADMISSION_MAX_QUEUE",
            "file gunicorn_admission.toml: max_queue",
        ][first]
    )
    assert sources["limit"] == Source("default", "limit")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("limit", "adaptive", "adaptive"),
        ("limit", "8", 8),
        ("max_wait", "50ms", 0.05),
        ("max_wait", "0.05", 0.05),
        ("max_wait", "none", None),
        ("max_wait", " None ", None),
        ("gone_check", "off", False),
        ("trust_request_start", "1", True),
        ("trust_request_start", "True", True),
        ("exempt", "/a, /b,", ("/a", "/b")),
        ("exempt", '["/a"]', ("/a",)),
        ("retry_after", "1s, 30s", (1.0, 30.0)),
        ("retry_after", "[2, 3]", (2.0, 3.0)),
        ("share", '{"/a": 0.2}', {"/a": 0.2}),
        ("cap", "3", 3),
        ("cap", '{"/a": 3}', {"/a": 3}),
        ("cap", "none", None),
        ("shed_status", "429", 429),
        ("statsd_prefix", "app", "app"),
        ("partition_by", "none", "none"),
    ],
)
def test_environment_text(name: str, text: str, value: object) -> None:
    settings, sources = load(environ=environ(**{name: text}))
    assert getattr(settings, name) == value
    assert sources[name].kind == "environment"


def test_routes_from_the_environment() -> None:
    text = '{"/a": "high", "/b": {"priority": "low", "deadline": "10s"}}'
    settings, _ = load(environ=environ(routes=text))
    assert settings == Settings(routes={"/a": "high", "/b": {"priority": "low", "deadline": "10s"}})


def test_an_empty_variable_is_not_set() -> None:
    settings, sources = load(environ=environ(limit="", max_wait="  "))
    assert settings == Settings()
    assert sources["limit"].kind == "default"


@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        ({"kwargs": {"limt": 3}}, "limt", "(keyword argument): expected a known setting. Hint: "
         "did you mean 'limit'?"),
        ({"conf": {"admission_limt": 3}}, "admission_limt", "did you mean 'admission_limit'?"),
        ({"environ": environ(limt="3")}, "GUNICORN_ADMISSION_LIMT",
         "did you mean 'GUNICORN_ADMISSION_LIMIT'?"),
        ({"environ": environ(limt="")}, "GUNICORN_ADMISSION_LIMT", "did you mean"),
    ],
)  # fmt: skip
def test_unknown_names(given: dict[str, Any], field: str, said: str) -> None:
    error = refused(**given)
    assert error.field == field
    assert said in str(error)


def test_unknown_name_in_a_file() -> None:
    write("[gunicorn_admission]\nlimt = 3\n")
    error = refused()
    assert error.field == "limt"
    assert error.source == "file gunicorn_admission.toml"
    assert error.hint == "did you mean 'limit'?"


@pytest.mark.parametrize(
    ("given", "source"),
    [
        ({"kwargs": {"limit": 0}}, "keyword argument limit"),
        ({"conf": {"admission_limit": 0}}, "gunicorn config admission_limit"),
        ({"environ": environ(limit="0")}, "environment GUNICORN_ADMISSION_LIMIT"),
        ({}, "file gunicorn_admission.toml: limit"),
    ],
)
def test_a_bad_value_says_where_it_stands(given: dict[str, Any], source: str) -> None:
    write("[gunicorn_admission]\nlimit = 0\n")
    error = refused(**given)
    assert (error.field, error.value, error.source) == ("limit", 0, source)
    assert source in str(error)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("gone_check", "maybe", "true or false"),
        ("routes", '{"/a": ', "quote it in shells"),
        ("routes", "/a=high", "JSON such as"),
        ("share", "0.5", "a mapping such as"),
        ("cap", "many", "JSON"),
        ("max_queue", "3.5", "an integer"),
        ("limit", "none", "one of adaptive"),
        ("interval", "none", "a duration"),
    ],
)
def test_bad_environment_text(name: str, text: str, said: str) -> None:
    error = refused(environ=environ(**{name: text}))
    assert error.field == name
    assert error.source == f"environment GUNICORN_ADMISSION_{name.upper()}"
    assert said in str(error)


def test_an_error_inside_a_rule_keeps_its_place() -> None:
    error = refused(environ=environ(routes='{"/a": {"cap": 0}}'))
    assert error.field == "routes['/a'].cap"
    assert error.source == "environment GUNICORN_ADMISSION_ROUTES"


def test_variables_that_are_no_settings() -> None:
    write("[gunicorn_admission]\nlimit = 3\n", "other.toml")
    settings, _ = load(
        environ={
            "GUNICORN_ADMISSION_CONF": "gunicorn.conf.py",
            "GUNICORN_ADMISSION_FILE": "other.toml",
            "GUNICORN_ADMISSION_STORE_URL": "sqlite:///webhooks.db",
            "GUNICORN_CMD_ARGS": "--threads 4",
            "HOME": "/",
        }
    )
    assert settings.limit == 3


def test_kubernetes_service_links_are_passed_over() -> None:
    links = [
        "SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_80_TCP",
        "PORT_80_TCP_ADDR", "PORT_80_TCP_PORT", "PORT_80_TCP_PROTO",
    ]  # fmt: skip
    settings, _ = load(environ=environ(**dict.fromkeys(links, "tcp://10.0.0.1:80")))
    assert settings == Settings()
    assert refused(environ=environ(PORTS="1")).field == "GUNICORN_ADMISSION_PORTS"


def test_conf_functions_and_modules_are_no_settings() -> None:
    def admission_helper() -> None: ...

    conf = {
        "bind": ":8000",
        "admission_helper": admission_helper,
        "admission_json": types,
        "admission_Class": Path,
        "admission_limit": 4,
    }
    assert load(conf=conf)[0].limit == 4


def test_a_table_of_a_project_file() -> None:
    file = write(
        '[tool.gunicorn_admission]\nlimit = 5\nroutes = {"/a" = "low"}\n', "pyproject.toml"
    )
    settings, sources = load(toml_path=file)
    assert settings == Settings(limit=5, routes={"/a": "low"})
    assert str(sources["routes"]) == "file pyproject.toml: routes"


def test_the_given_file_beats_the_named_one_and_that_the_default_one() -> None:
    for number, name in enumerate(("gunicorn_admission.toml", "b.toml", "c.toml"), 1):
        write(f"[gunicorn_admission]\nlimit = {number}\n", name)
    named = {"GUNICORN_ADMISSION_FILE": "b.toml"}
    assert load()[0].limit == 1
    assert load(environ={"GUNICORN_ADMISSION_FILE": ""})[0].limit == 1
    assert load(environ=named)[0].limit == 2
    assert load(environ=named, toml_path="c.toml")[0].limit == 3


def test_an_empty_file_sets_nothing() -> None:
    write("# later\n")
    assert load()[0] == Settings()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("limit = 3\n", "write [gunicorn_admission] above the settings"),
        ("gunicorn_admission = 3\n", "write [gunicorn_admission] above the settings"),
        ("tool = 3\n", "write [gunicorn_admission] above the settings"),
        ("[gunicorn_admission]\n[tool.gunicorn_admission]\n", "keep one of the two"),
        ("limit = \n", "a valid TOML file"),
    ],
)
def test_a_file_that_says_nothing_clear(text: str, said: str) -> None:
    write(text)
    error = refused()
    assert error.field == "GUNICORN_ADMISSION_FILE"
    assert error.value == "gunicorn_admission.toml"
    assert said in str(error)


def test_a_named_file_must_be_readable() -> None:
    error = refused(environ={"GUNICORN_ADMISSION_FILE": "absent.toml"})
    assert (error.field, error.value) == ("GUNICORN_ADMISSION_FILE", "absent.toml")
    Path("latin.toml").write_bytes(b"[gunicorn_admission]\nstatsd_prefix = '\xe9'\n")
    assert refused(toml_path="latin.toml").field == "toml_path"


def test_locate_adds_the_place_to_a_later_error() -> None:
    settings, sources = load(environ=environ(limit="8"))
    with pytest.raises(ConfigError) as caught:
        settings.derive(8, waiting_holds_thread=True)
    error = locate(caught.value, sources)
    assert error.source == "environment GUNICORN_ADMISSION_LIMIT"
    assert (error.field, error.value, error.hint) == ("limit", 8, caught.value.hint)
    assert locate(error, {}).source == error.source
    assert locate(ConfigError("x", 1, "y", "z"), sources).source is None
