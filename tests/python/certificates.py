# SPDX-License-Identifier: MIT
"""Certificates for tests, by the command openssl: an authority of its own and what it issues; and servers with them."""

import shutil
import ssl
import subprocess

import made
import pytest

from serve_client import Server


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], capture_output=True, check=True, timeout=60)


class Authority:
    def __init__(self, folder, name="tare's tests"):
        if not shutil.which("openssl"):
            pytest.skip("no command openssl (make deps)")
        self.folder = folder
        folder.mkdir()
        self.key, self.certificate = folder / "ca.key", folder / "ca.pem"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", self.key, "-out", self.certificate,
                "-subj", "/CN=" + name, "-days", "30", "-addext", "basicConstraints=critical,CA:TRUE")

    def issue(self, name, hosts="DNS:localhost,IP:127.0.0.1", days=30):
        """Files of a certificate and its key."""
        request, key, certificate = (self.folder / (name + end) for end in (".csr", ".key", ".pem"))
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", request, "-subj", "/CN=" + name,
                "-addext", "subjectAltName=" + hosts)
        openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial", "-days", days,
                "-copy_extensions", "copyall", "-out", certificate)
        return certificate, key

    def trust(self):
        """A client that trusts it and nobody else."""
        return ssl.create_default_context(cafile=self.certificate)


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls") / "authority")


@pytest.fixture(scope="session")
def pair(authority):
    return authority.issue("server")


@pytest.fixture(scope="session")
def with_tls():
    if made.is_without("libssl"):
        pytest.skip("built without libssl")


@pytest.fixture
def start(command, with_tls, tmp_path, authority, pair):
    """In place of that of served.py: a server with TLS."""
    servers = []

    def call(*options, data=None, files=pair, **popen):
        s = Server(command, data or tmp_path / "data", "--tls-cert", files[0], "--tls-key", files[1], *options, **popen)
        s.tls = authority.trust()
        servers.append(s)
        return s

    yield call
    for s in servers:
        s.kill()
