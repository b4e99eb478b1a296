"""How ``install`` composes hooks and settings; a stub stands for the worker side."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gunicorn.config import Config

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.hooks import install
from gunicorn_admission.scoreboard import master

OURS = (
    "on_starting",
    "on_reload",
    "pre_fork",
    "post_worker_init",
    "post_request",
    "child_exit",
    "worker_exit",
    "nworkers_changed",
)


class Log:
    """A gunicorn logger that keeps the lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def error(self, text: str, *args: object) -> None:
        self.lines.append(text % args)

    warning = exception = error


class Process:
    """As much of an arbiter or a worker as the hooks touch."""

    def __init__(self, cfg: Config | None = None) -> None:
        self.log = Log()
        self.cfg = cfg
        self.worker_class = None if cfg is None else cfg.worker_class


@pytest.fixture
def worker_side(monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """A stub of the package that works in the worker; ``calls`` keeps what it was asked."""
    calls: list[tuple[Any, ...]] = []

    def install(worker: object, settings: object) -> types.SimpleNamespace:
        calls.append(("install", worker, settings))
        return types.SimpleNamespace(mode=stub.mode, stop=lambda: calls.append(("stop",)))

    stub = types.SimpleNamespace(
        calls=calls,
        mode="gate",
        install=install,
        finish_request=lambda worker, environ: calls.append(("finish", worker, environ)),
    )
    monkeypatch.setitem(sys.modules, "gunicorn_admission.gthread", stub)
    monkeypatch.delattr("gunicorn_admission.gthread", raising=False)
    return stub


def configured(namespace: dict[str, Any]) -> Config:
    """What gunicorn makes of a configuration."""
    cfg = Config()
    cfg.set("threads", 4)
    for name, value in namespace.items():
        if name in cfg.settings:
            cfg.set(name, value)
    return cfg


def test_gunicorn_accepts_the_composed_hooks_as_they_are() -> None:
    namespace: dict[str, Any] = {}
    install(namespace)
    cfg = configured(namespace)
    assert [getattr(cfg, name) is namespace[name] for name in OURS] == [True] * len(OURS)


@pytest.mark.parametrize("given", [2, 3, 4])
def test_post_request_of_any_arity_is_called_with_what_it_takes(
    given: int, worker_side: types.SimpleNamespace
) -> None:
    seen: list[tuple[object, ...]] = []
    hooks: dict[int, Callable[..., None]] = {
        2: lambda worker, req: seen.append((worker, req)),
        3: lambda worker, req, environ: seen.append((worker, req, environ)),
        4: lambda worker, req, environ, resp: seen.append((worker, req, environ, resp)),
    }
    namespace: dict[str, Any] = {"post_request": hooks[given]}
    install(namespace)
    worker, environ = Process(), {"PATH_INFO": "/"}
    namespace["post_worker_init"](worker)
    namespace["post_request"](worker, "req", environ, "resp")
    assert seen == [(worker, "req", environ, "resp")[:given]]
    assert worker_side.calls[-1] == ("finish", worker, environ)


def test_their_exception_leaves_after_ours_ran(worker_side: types.SimpleNamespace) -> None:
    def theirs(worker: object, req: object) -> None:
        raise KeyError("their bug")

    namespace: dict[str, Any] = {"post_request": theirs}
    install(namespace)
    worker = Process()
    namespace["post_worker_init"](worker)
    with pytest.raises(KeyError, match="their bug"):
        namespace["post_request"](worker, None, {}, None)
    assert worker_side.calls[-1] == ("finish", worker, {})


def test_our_exception_is_logged_once_and_goes_no_further(
    worker_side: types.SimpleNamespace,
) -> None:
    def broken(worker: object, environ: object) -> None:
        raise RuntimeError("our bug")

    worker_side.finish_request = broken
    namespace: dict[str, Any] = {}
    install(namespace)
    worker = Process()
    namespace["post_worker_init"](worker)
    for _ in range(2):
        namespace["post_request"](worker, None, {}, None)
    (line,) = worker.log.lines
    assert "post_request failed" in line


def test_requests_before_the_install_are_nothing_to_finish() -> None:
    namespace: dict[str, Any] = {}
    install(namespace)
    worker = Process()
    namespace["post_request"](worker, None, {}, None)
    assert worker.log.lines == []


def test_requests_of_a_worker_without_admission_are_left_alone(
    worker_side: types.SimpleNamespace,
) -> None:
    worker_side.mode = "off"
    namespace: dict[str, Any] = {}
    install(namespace)
    worker = Process()
    namespace["post_worker_init"](worker)
    namespace["post_request"](worker, "req", None, "resp")
    assert [call[0] for call in worker_side.calls] == ["install"]
    assert worker.log.lines == []


def test_a_worker_gets_the_settings(worker_side: types.SimpleNamespace) -> None:
    namespace: dict[str, Any] = {}
    installation = install(namespace, limit=3)
    namespace["post_worker_init"](worker := Process())
    assert worker_side.calls == [("install", worker, installation.settings())]
    assert worker.log.lines == []


def test_a_worker_that_exits_stops_what_was_installed(worker_side: types.SimpleNamespace) -> None:
    namespace: dict[str, Any] = {}
    install(namespace)
    namespace["worker_exit"](server := Process(), Process())  # in the master: nothing to stop
    namespace["post_worker_init"](worker := Process())
    namespace["worker_exit"](server, worker)
    assert [call[0] for call in worker_side.calls] == ["install", "stop"]
    assert server.log.lines == []


def test_a_second_call_is_the_first() -> None:
    namespace: dict[str, Any] = {}
    first = install(namespace, limit=3)
    before = dict(namespace)
    assert install(namespace) is first
    assert install(namespace, limit=3) is first
    assert namespace == before


def test_a_second_call_takes_back_hooks_defined_since(worker_side: types.SimpleNamespace) -> None:
    namespace: dict[str, Any] = {}
    first = install(namespace)
    seen: list[object] = []
    namespace["post_worker_init"] = lambda worker: seen.append(worker)
    assert install(namespace) is first
    namespace["post_worker_init"](worker := Process())
    assert seen == [worker]
    assert worker_side.calls[0][:2] == ("install", worker)


def test_a_second_call_that_disagrees_is_refused() -> None:
    namespace: dict[str, Any] = {}
    install(namespace, limit=3)
    with pytest.raises(ConfigError, match=r"first had \{'limit': 3\}"):
        install(namespace, limit=4)


def test_a_value_that_is_no_hook_is_left_for_gunicorn_to_refuse() -> None:
    namespace: dict[str, Any] = {"post_worker_init": lambda: None}
    install(namespace)
    with pytest.raises(TypeError, match="arity of: 1"):
        configured(namespace)


def test_dotted_names_are_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    module = types.ModuleType("siteconf")
    module.__dict__["ready"] = lambda server: seen.append(server)
    monkeypatch.setitem(sys.modules, "siteconf", module)
    namespace: dict[str, Any] = {"on_reload": "siteconf.ready"}
    install(namespace)
    server = Process(configured(namespace))
    namespace["on_reload"](server)
    assert seen == [server]


def test_names_of_the_configuration_are_settings_but_modules_are_not() -> None:
    namespace: dict[str, Any] = {"admission_limit": 5, "admission_rules": types.ModuleType("x")}
    assert install(namespace).settings().limit == 5
    namespace["admission_limit"] = 6  # after install(): still read when a worker starts
    assert install(namespace).settings().limit == 6


def test_keywords_win_over_names() -> None:
    namespace: dict[str, Any] = {"admission_limit": 5}
    assert install(namespace, limit=7).settings().limit == 7


@pytest.mark.parametrize("name", ["admission_limt", "admission_"])
def test_an_unknown_name_is_an_error_that_shows_it_as_written(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        install({name: 5})
    assert caught.value.field == name
    assert caught.value.source == "gunicorn config"


def test_a_bad_value_of_a_name_is_shown_as_written() -> None:
    with pytest.raises(ConfigError, match=r"gunicorn config admission_limit"):
        install({"admission_limit": 0})


def test_a_bad_keyword_is_shown_as_written() -> None:
    with pytest.raises(ConfigError, match=r"^limit = 0 \(keyword argument"):
        install({"admission_limit": 3}, limit=0)


def test_files_are_those_of_the_start_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "gunicorn_admission.toml").write_text("[gunicorn_admission]\nlimit = 11\n")
    (tmp_path / "other.toml").write_text("[gunicorn_admission]\nlimit = 12\n")
    monkeypatch.chdir(tmp_path)
    installation = install({})
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert installation.settings().limit == 11
    monkeypatch.setenv("GUNICORN_ADMISSION_FILE", "other.toml")
    assert installation.settings().limit == 12


def test_the_environment_is_read_again_by_each_worker(
    worker_side: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace: dict[str, Any] = {}
    install(namespace)
    monkeypatch.setenv("GUNICORN_ADMISSION_LIMIT", "9")
    namespace["post_worker_init"](Process())
    assert worker_side.calls[0][2].limit == 9


def test_a_worker_with_a_bad_environment_uses_what_was_valid(
    worker_side: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace: dict[str, Any] = {}
    install(namespace, max_queue=8)
    monkeypatch.setenv("GUNICORN_ADMISSION_LIMIT", "adaptiv")
    namespace["post_worker_init"](worker := Process())
    assert worker_side.calls[0][2].max_queue == 8
    assert "GUNICORN_ADMISSION_LIMIT" in worker.log.lines[0]


def test_a_start_with_a_bad_environment_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    namespace: dict[str, Any] = {}
    install(namespace)
    monkeypatch.setenv("GUNICORN_ADMISSION_LIMIT", "adaptiv")
    server = Process(configured(namespace))
    with pytest.raises(SystemExit) as ended:
        namespace["on_starting"](server)
    assert ended.value.code == 1
    assert len(server.log.lines) == 1


def test_more_than_the_threads_can_run_refuses_the_start_but_not_a_reload() -> None:
    namespace: dict[str, Any] = {"threads": 4}
    install(namespace, max_limit=5)
    server = Process(configured(namespace))
    with pytest.raises(SystemExit):
        namespace["on_starting"](server)
    namespace["on_reload"](server)
    assert ["max_limit = 5" in line for line in server.log.lines] == [True, True]


def test_sizes_do_not_matter_where_admission_is_off() -> None:
    namespace: dict[str, Any] = {"threads": 4}
    install(namespace, max_limit=5, mode="off")
    namespace["on_starting"](server := Process(configured(namespace)))
    assert server.log.lines == []


def test_a_worker_whose_sizes_do_not_fit_serves_without_admission(
    worker_side: types.SimpleNamespace,
) -> None:
    namespace: dict[str, Any] = {}
    installation = install(namespace, max_limit=5)
    worker_side.install = lambda worker, settings: settings.derive(4, False)
    namespace["post_worker_init"](worker := Process())
    namespace["post_request"](worker, None, {}, None)
    (line,) = worker.log.lines
    assert "max_limit = 5" in line
    assert line.endswith("Requests are served without admission")
    assert worker_side.calls == []
    assert installation.settings().max_limit == 5


@pytest.mark.parametrize("hook", ["on_starting", "on_reload"])
def test_hidden_hooks_are_chained_again(hook: str, worker_side: types.SimpleNamespace) -> None:
    namespace: dict[str, Any] = {}
    install(namespace)
    cfg = configured(namespace)
    seen: list[object] = []
    cfg.set("post_worker_init", lambda worker: seen.append(worker))
    server = Process(cfg)
    namespace[hook](server)
    (line,) = server.log.lines
    assert "defines post_worker_init after install" in line
    cfg.post_worker_init(worker := Process())
    assert seen == [worker]
    assert worker_side.calls[-1][:2] == ("install", worker)
    namespace[hook](server)
    assert len(server.log.lines) == 1


@pytest.mark.parametrize("hook", ["on_starting", "on_reload"])
def test_the_named_configuration_is_forgotten_so_that_a_reload_reads_it_again(
    hook: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace: dict[str, Any] = {}
    install(namespace)
    monkeypatch.setitem(sys.modules, "gunicorn_admission.conf", types.ModuleType("conf"))
    namespace[hook](Process(configured(namespace)))
    assert "gunicorn_admission.conf" not in sys.modules


def test_a_recycled_worker_takes_over_the_place_of_the_lost_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(master, "_board", None)
    namespace: dict[str, Any] = {}
    install(namespace)
    server, first, second, third = Process(), Process(), Process(), Process()
    for worker in (first, second):
        namespace["pre_fork"](server, worker)
    namespace["child_exit"](server, first)
    namespace["pre_fork"](server, third)
    assert [worker.admission_slot for worker in (first, second, third)] == [0, 1, 0]
