"""What `deploy` holds agrees with the service: paths, extras, ports, options, times to stop."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from calibrant.cli.service import Listening
from calibrant.serve.routes import WAYS
from calibrant.serve.run import GRACE

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PORT = Listening().port


def check_command(words: list[str]) -> None:
    """Check what is given to the command `calibrant`."""
    name, address, *rest = words
    assert name == "serve"
    assert address.endswith(".db") or address.startswith("postgresql://")
    known = {f"--{field.name}" for field in fields(Listening)}
    assert {word for word in rest if word.startswith("--")} <= known
    if "--host" in rest:
        assert rest[rest.index("--host") + 1] == "0.0.0.0"


def dockerfile() -> list[tuple[str, str]]:
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines if line]


def test_the_image_installs_extras_that_there_are_and_runs_the_command() -> None:
    told = dict(dockerfile())
    known = [
        "FROM",
        "COPY",
        "RUN",
        "USER",
        "VOLUME",
        "EXPOSE",
        "STOPSIGNAL",
        "HEALTHCHECK",
        "ENTRYPOINT",
        "CMD",
    ]
    assert [word for word, _ in dockerfile()] == known
    version = re.fullmatch(r"python:3\.(\d+)-slim", told["FROM"])
    least = re.search(r">=3\.(\d+)", PROJECT["requires-python"])
    assert version is not None
    assert least is not None
    assert int(version[1]) >= int(least[1])
    extras = re.search(r"/src\[([\w,]+)\]", told["RUN"])
    assert extras is not None
    assert set(extras[1].split(",")) <= set(PROJECT["optional-dependencies"])
    assert {"serve", "postgres"} <= set(extras[1].split(","))
    assert told["USER"] in told["RUN"]
    (entry,) = json.loads(told["ENTRYPOINT"])
    assert entry in PROJECT["scripts"]
    check_command(json.loads(told["CMD"]))
    assert json.loads(told["CMD"])[1].startswith(told["VOLUME"] + "/")
    assert int(told["EXPOSE"]) == PORT
    assert signal.Signals[told["STOPSIGNAL"]] == signal.SIGTERM
    health = json.loads(told["HEALTHCHECK"].removeprefix("CMD "))
    compile(health[2], "health", "exec")
    assert f"http://127.0.0.1:{PORT}/readyz" in health[2]


def test_the_image_is_given_all_that_the_build_reads() -> None:
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    kept = {line[1:] for line in lines if line.startswith("!")}
    assert all((ROOT / name).exists() for name in kept)
    assert {"pyproject.toml", "src", PROJECT["readme"]} <= kept


def test_the_parts_of_the_compose_file_agree() -> None:
    told = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = told["services"]
    service, database = services["service"], services["database"]
    context = (DEPLOY / service["build"]["context"]).resolve()
    assert (context / service["build"]["dockerfile"]).is_file()
    check_command(service["command"])
    user = database["environment"]["POSTGRES_USER"]
    assert service["command"][1].startswith(f"postgresql://{user}:${{POSTGRES_PASSWORD}}@database/")
    assert "POSTGRES_PASSWORD" in database["environment"]["POSTGRES_PASSWORD"]
    assert int(database["image"].removeprefix("postgres:")) >= 15
    for name, each in services.items():
        assert set(each.get("depends_on", {})) <= set(services), name
        for port in each.get("ports", ()):
            assert port.startswith("127.0.0.1:")
    assert service["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    assert service["depends_on"]["database"]["condition"] == "service_healthy"
    assert "healthcheck" in database
    assert int(service["stop_grace_period"].removesuffix("s")) > GRACE
    assert set(told["volumes"]) == {"database"}


def test_prometheus_asks_where_the_service_is_with_a_token() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    (job,) = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text())["scrape_configs"]
    assert job["static_configs"] == [{"targets": [f"service:{PORT}"]}]
    mounts = dict(each.split(":")[:2] for each in services["prometheus"]["volumes"])
    assert (DEPLOY / "prometheus.yaml").resolve() == (DEPLOY / next(iter(mounts))).resolve()
    assert job["authorization"]["credentials_file"] in mounts.values()
    (scope,) = [way.scope for way in WAYS if way.path == job.get("metrics_path", "/metrics")]
    assert scope == "read"


def test_the_unit_of_systemd_serves_its_own_directory(tmp_path: Path) -> None:
    file = DEPLOY / "calibrant.service"
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(file)
    service = unit["Service"]
    command, *words = shlex.split(service["ExecStart"])
    assert Path(command).name in PROJECT["scripts"]
    check_command(words)
    assert words[1].startswith(f"/var/lib/{service['StateDirectory']}/")
    assert service["UMask"] == "0077"
    assert int(service["TimeoutStopSec"]) > GRACE
    assert unit["Install"]["WantedBy"] == "multi-user.target"
    if shutil.which("systemd-analyze"):
        # The command is not installed here; any other that is will do.
        copy = tmp_path / file.name
        copy.write_text(file.read_text().replace(command, sys.executable))
        asked = ["systemd-analyze", "verify", str(copy)]
        ran = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
        assert (ran.returncode, ran.stderr) == (0, "")
