"""nginx and HAProxy with the configurations of docs/operations, on ports of the test's own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.holdsite.servers import ended, listening
from tests.programs import program
from tests.support import free_port

OPERATIONS = Path(__file__).resolve().parents[2] / "docs" / "operations"
NAMES = ["nginx", "haproxy"]
_NGINX = """
daemon off;
pid {directory}/pid;
error_log {directory}/log;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    include {directory}/nginx.conf;
}}
"""


@contextmanager
def gateway(name: str, directory: Path, *servers: int) -> Iterator[int]:
    """The gateway in front of the servers on those two ports. Yields its port."""
    port = free_port()
    directory.chmod(0o755)  # nginx's workers are another user than root
    command = {"nginx": _nginx, "haproxy": _haproxy}[name](directory, port, *servers)
    with (directory / "output").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        listening("127.0.0.1", port, process)
        assert process.poll() is None, (directory / "output").read_text()
        yield port
    finally:
        ended(process)


def _nginx(directory: Path, port: int, first: int, second: int) -> list[str]:
    _moved("nginx.conf", directory, ("listen 80;", f"listen 127.0.0.1:{port};"), first, second)
    main = directory / "main.conf"
    main.write_text(_NGINX.format(directory=directory))
    return [program("nginx"), "-p", str(directory), "-e", f"{directory}/log", "-c", str(main)]


def _haproxy(directory: Path, port: int, first: int, second: int) -> list[str]:
    config = _moved("haproxy.cfg", directory, ("bind :80", f"bind 127.0.0.1:{port}"), first, second)
    return [program("haproxy"), "-db", "-f", str(config)]


def _moved(name: str, directory: Path, listen: tuple[str, str], first: int, second: int) -> Path:
    """The documented file with only its ports changed."""
    text = (OPERATIONS / name).read_text()
    for old, new in (listen, (":8001", f":{first}"), (":8002", f":{second}")):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    moved = directory / name
    moved.write_text(text)
    return moved
