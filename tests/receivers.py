"""A receiver of webhooks: a real HTTPS server, with a certificate authority that is made for the run."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)

Answering = Callable[[BaseHTTPRequestHandler], None]


class Authority:
    """Signs certificates; `trusted` is the file for those who trust it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test authority")])
        basics = x509.BasicConstraints(ca=True, path_length=0)
        own = (
            self._builder(self._name, self._key)
            .add_extension(basics, critical=True)
            .add_extension(_SIGNS_CERTIFICATES, critical=True)
        )
        self.trusted = directory / "authority.pem"
        self.trusted.write_bytes(self._signed(own))

    def context(self, *names: str) -> ssl.SSLContext:
        """What a server that is called so needs."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        builder = self._builder(subject, key).add_extension(
            x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False
        )
        file = self._directory / f"{names[0]}.pem"
        encryption = serialization.NoEncryption()
        file.write_bytes(
            self._signed(builder)
            + key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
            )
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def _builder(self, subject: x509.Name, key: Any) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        # From Python 3.13 on, certificates that do not name their keys are refused.
        own_key = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        issuers_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(own_key, critical=False)
            .add_extension(issuers_key, critical=False)
        )

    def _signed(self, builder: x509.CertificateBuilder) -> bytes:
        certificate = builder.sign(self._key, hashes.SHA256())
        return certificate.public_bytes(serialization.Encoding.PEM)


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class Receiver:
    """Answers each path as `answers` says, with 204 where it says nothing."""

    port: int
    received: list[Received] = field(default_factory=list)
    asked_for: list[str | None] = field(default_factory=list)
    """The names that TLS asked for."""
    answers: dict[str, int | Answering] = field(default_factory=dict)
    closing: threading.Event = field(default_factory=threading.Event)
    """Set when the test is over: who answers late may stop waiting."""

    def at(self, path: str) -> list[Received]:
        """What arrived there."""
        return [each for each in self.received if each.path == path]


@contextmanager
def receiver(context: ssl.SSLContext) -> Iterator[Receiver]:
    """A receiver on a loopback port, and gone afterwards."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            running.received.append(Received(self.path, headers, body))
            answering = running.answers.get(self.path, 204)
            if isinstance(answering, int):
                self.send_response(answering)
                self.send_header("Content-Length", "0")
                self.end_headers()
            else:
                answering(self)

        def log_message(self, *args: Any) -> None:
            """Nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 100

        def handle_error(self, *args: Any) -> None:
            """Clients that hang up are what some tests are about."""

        def finish_request(self, request: Any, client_address: Any) -> None:
            # In the connection's own thread: a client that does not shake hands holds up nobody else.
            with context.wrap_socket(request, server_side=True) as secured:
                super().finish_request(secured, client_address)

    def note(sock: Any, name: str | None, _: Any) -> None:
        running.asked_for.append(name)

    context.sni_callback = note
    server = Server(("127.0.0.1", 0), Handler)
    running = Receiver(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=[0.05], daemon=True)
    thread.start()
    try:
        yield running
    finally:
        running.closing.set()
        server.shutdown()
        server.server_close()
