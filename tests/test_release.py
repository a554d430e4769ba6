"""What is released: the wheel and the sdist work where there is no source beside them."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import threading
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("hatchling", reason="needs the extra test")

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parent.parent
AT_WORK = ROOT / "tests" / "at_work.py"


def build(kind: str, source: Path, place: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(place)]
    subprocess.run(command, cwd=source, capture_output=True, check=True)
    return next(place.iterdir())


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, unpacked."""
    place = tmp_path_factory.mktemp("sdist")
    with tarfile.open(build("sdist", ROOT, place / "made")) as archive:
        archive.extractall(place / "out", filter="data")
    return next((place / "out").iterdir())


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, made from the sdist alone, unpacked."""
    place = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(build("wheel", sdist, place / "made")) as archive:
        archive.extractall(place / "out")
    return place / "out"


@pytest.fixture(scope="module")
def wheel_metadata(wheel: Path) -> str:
    """What the wheel says about itself."""
    return next(wheel.glob("*.dist-info/METADATA")).read_text()


def at_work(package: Path, away: Path, python: str = sys.executable) -> str:
    """Run the package from a directory without sources; return what it said last."""
    alone = Path(shutil.copy(AT_WORK, away))
    kept = {key: value for key, value in os.environ.items() if not key.startswith("CALIBRANT_")}
    settings = {**kept, "PYTHONPATH": "", "XDG_CACHE_HOME": str(away), "CALIBRANT_COMPILE": "off"}
    command = [python, "-W", "ignore", str(alone), str(package)]
    ran = subprocess.run(command, cwd=away, capture_output=True, text=True, env=settings)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_the_wheel_works_with_its_source_gone(wheel: Path, tmp_path: Path) -> None:
    told = at_work(wheel, tmp_path)
    assert "data/gpl of a clone of the repository has it" in told


def test_the_wheel_works_in_a_fresh_environment_with_numpy_alone(
    wheel: Path, tmp_path: Path
) -> None:
    numpy = importlib.util.find_spec("numpy")
    assert numpy is not None
    assert numpy.origin is not None
    place, lib = tmp_path / "fresh", Path(numpy.origin).parents[1]
    venv.create(place, symlinks=True)
    (packages,) = place.glob("lib/python*/site-packages")
    for found in [*lib.glob("numpy"), *lib.glob("numpy.libs")]:
        (packages / found.name).symlink_to(found)
    shutil.copytree(wheel, packages, dirs_exist_ok=True)
    python = str(place / "bin" / "python")
    told = at_work(packages, tmp_path, python)
    assert "data/gpl of a clone of the repository has it" in told
    listed = [python, "-c", "import pkgutil; print(*(m.name for m in pkgutil.iter_modules()))"]
    names = subprocess.run(listed, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert {"numpy", "calibrant"} <= set(names.split())
    assert not {"scipy", "numba", "typer", "pyarrow", "pytest"} & set(names.split())


def test_a_command_tries_the_wheel_alone_and_with_each_extra() -> None:
    script = (ROOT / "script" / "compat").read_text()
    assert "wheels" in script
    assert "tests/at_work.py" in script


def test_the_sdist_works_and_has_the_data_that_stay_apart(sdist: Path, tmp_path: Path) -> None:
    assert at_work(sdist / "src", tmp_path) == "all data"
    for name in (
        "LICENSE",
        "README.md",
        "data/gpl/README.md",
        "tests/conftest.py",
        "docs/index.md",
    ):
        assert (sdist / name).is_file()


def test_nothing_under_another_licence_is_in_the_wheel(wheel: Path) -> None:
    names = {path.name for path in (wheel / "calibrant" / "datasets" / "streams").iterdir()}
    assert not names & {"weather_pop", "spf_recession", "forecastbench"}
    assert {"fivethirtyeight", "llm_mmlu_pro", "image_logits"} <= names


def files_in(package: Path) -> set[str]:
    """Return all files of a package that nobody made by running it."""
    return {
        path.relative_to(package).as_posix()
        for path in package.rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and path.suffix not in (".nbi", ".nbc")
    }


def test_the_wheel_has_every_file_that_the_package_reads(wheel: Path) -> None:
    here, there = files_in(ROOT / "src" / "calibrant"), files_in(wheel / "calibrant")
    assert here == there


def test_every_package_of_all_tells_its_licence() -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "licences.py")],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = ran.stdout.splitlines()[2:]
    assert len(rows) > 20
    assert not [row for row in rows if "not told" in row]


# Addresses are set in one place.

URLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
NAMED = {"Documentation", "Source", "Issues", "Security"}


def docs_module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_addresses_have_known_names_and_are_said_nowhere_else() -> None:
    assert set(URLS) <= NAMED
    assert all(url.startswith("https://") for url in URLS.values())
    cited = re.findall("^repository-code: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited == [url for name, url in URLS.items() if name == "Source"]


def test_the_wheel_tells_the_addresses_that_are_set(wheel_metadata: str) -> None:
    told = re.findall("^Project-URL: (.*), (.*)$", wheel_metadata, re.MULTILINE)
    assert dict(told) == URLS


def test_the_security_policy_names_what_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = docs_module("tables")
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    project = tmp_path / "pyproject.toml"
    project.write_text("[project]\n")
    assert "No address is set" in tables.security_contact()
    assert "no issue tracker is set" in tables.issue_tracker()
    project.write_text('[project.urls]\nSecurity = "https://a.test"\nIssues = "https://b.test"\n')
    assert tables.security_contact() == "Report it in private at <https://a.test>.\n"
    assert tables.issue_tracker() == "Anything else: <https://b.test>.\n"


# Pins are asked about.


class Knowing(BaseHTTPRequestHandler):
    """A service that knows two vulnerabilities of one version of one package."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
        weak = {"vulns": [{"id": "OSV-1"}, {"id": "OSV-2"}]}
        bad = {"package": {"ecosystem": "PyPI", "name": "old"}, "version": "1.0"}
        body = json.dumps({"results": [weak if each == bad else {} for each in asked]}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def service() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Knowing) as server:
        running = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        running.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        running.join()


def audited(tmp_path: Path, pinned: str, service: str) -> int:
    file = tmp_path / "some.txt"
    file.write_text(pinned)
    return int(docs_module("audit").main([str(file), "--service", service]))


def test_known_vulnerabilities_of_pins_are_listed(
    tmp_path: Path, service: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hashed = (
        "old==1.0 \\\n    --hash=sha256:00\nnew[extra]==2.0 ; python_version > '3'\n# old==0.1\n"
    )
    assert audited(tmp_path, hashed, service) == 1
    told = capsys.readouterr().out.splitlines()
    assert told == ["old 1.0: OSV-1, OSV-2", "2 pins checked, vulnerabilities are known in 1"]
    assert audited(tmp_path, "old==1.1\n", service) == 0


def test_pins_that_nobody_was_asked_about_are_not_called_sound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{held.getsockname()[1]}/"
        assert audited(tmp_path, "old==1.0\n", nobody) == 3
    assert capsys.readouterr().out.startswith("1 pins were not checked: no answer from http")


def test_every_pin_is_asked_about() -> None:
    files = sorted(ROOT.glob("requirements/*.txt"))
    lines = [line for file in files for line in file.read_text().splitlines() if "==" in line]
    pinned = {line.split()[0].partition("[")[0].partition("==")[0] for line in lines}
    found = docs_module("audit").pins(files)
    assert {name for name, _ in found} == {name for name in pinned if not name.startswith("#")}
