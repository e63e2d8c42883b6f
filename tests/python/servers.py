"""Database servers of Debian's packages, on a loopback port, for as long as a test runs."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

# No part of any text that a program writes by itself.
PASSWORD = "hid%den&word-7f3a"
START_SECONDS = 60


class Missing(Exception):
    """The server is not installed."""


@dataclass
class Server:
    port: int
    url: str  # of the database test
    run: object  # runs a statement there
    ca: Path  # PEM of who signed the server's certificate, which is for 127.0.0.1 alone


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def someone():
    """A user that is not root: the servers refuse to be run by it."""
    if os.getuid() != 0:
        return pwd.getpwuid(os.getuid())
    for name in ("postgres", "mysql", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            pass
    raise Missing("there is no user but root")


class Folder:
    """A folder of that user's; programs run there as it."""

    def __init__(self):
        self.user = someone()
        self.path = Path(tempfile.mkdtemp(prefix="db"))  # a short name: that of a socket is limited
        if os.getuid() == 0:
            os.chown(self.path, self.user.pw_uid, self.user.pw_gid)

    def options(self):
        options = {"cwd": self.path, "env": {"PATH": os.environ["PATH"], "HOME": str(self.path), "LC_ALL": "C.UTF-8"}}
        if os.getuid() == 0:
            options |= {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []}
        return options

    def call(self, *words, **more):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=START_SECONDS,
                              **self.options(), **more)  # fmt: skip
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout


def certify(folder):
    """ca.pem, cert.pem and key.pem in the folder: a certificate for 127.0.0.1, and who signed it."""
    openssl = shutil.which("openssl")
    if not openssl:
        raise Missing("openssl is not installed (scripts/install_deps.sh test)")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    folder.call(openssl, "req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", 2, "-subj", "/CN=test")
    folder.call(openssl, "req", *key, "-keyout", "key.pem", "-out", "request", "-subj", "/CN=server")
    (folder.path / "names").write_text("subjectAltName=IP:127.0.0.1")
    os.chmod(folder.path / "names", 0o644)
    folder.call(openssl, "x509", "-req", "-in", "request", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", 2,
                "-extfile", "names", "-out", "cert.pem")  # fmt: skip
    # Where a name with a blank and a quote leads to it, too.
    place = folder.path / "it's a ca.pem"
    shutil.copyfile(folder.path / "ca.pem", place)
    os.chmod(folder.path, 0o755)
    os.chmod(place, 0o644)
    return place


def begin(folder, words, ready, log):
    """A server that is ready, on a port that nobody took meanwhile; words and ready get the port."""
    for _ in range(5):
        port = free_port()
        server = subprocess.Popen([str(word) for word in words(port)], stdout=log, stderr=log, **folder.options())
        deadline = time.monotonic() + START_SECONDS
        while server.poll() is None and time.monotonic() < deadline:
            try:
                ready(port)
                return server, port
            except AssertionError:
                time.sleep(0.1)
        server.kill()
        server.wait()
        said = (folder.path / "log").read_text()
        if "ddress already in use" not in said:
            break
    raise AssertionError(said[-3000:])


@contextmanager
def running(folder, words, ready, stop=signal.SIGTERM):
    """The port of the server, once ready(port) does not raise; it ends with the block."""
    log = (folder.path / "log").open("w")
    server = None
    try:
        server, port = begin(folder, words, ready, log)
        yield port
    finally:
        if server is not None:
            server.send_signal(stop)
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        log.close()
        shutil.rmtree(folder.path, ignore_errors=True)


@contextmanager
def postgres():
    """PostgreSQL with the user "me" and the database "test", and the database "guarded", which takes
    connections with TLS alone."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[4]))
    if not places:
        raise Missing("PostgreSQL is not installed (scripts/install_deps.sh test)")
    bin_ = places[-1].parent
    folder = Folder()
    (folder.path / "password").write_text(PASSWORD)
    os.chmod(folder.path / "password", 0o644)
    folder.call(bin_ / "initdb", "-D", folder.path / "data", "-U", "me", "-A", "scram-sha-256", "--pwfile",
                folder.path / "password", "--no-sync", "-E", "UTF8", "--locale=C")  # fmt: skip
    ca = certify(folder)
    rules = folder.path / "data" / "pg_hba.conf"
    rules.write_text("hostnossl guarded all all reject\n" + rules.read_text())

    def run_at(port, sql, database="test"):
        line = f"host=127.0.0.1 port={port} user=me dbname={database}"
        options = folder.options()
        options["env"]["PGPASSWORD"] = PASSWORD
        done = subprocess.run([bin_ / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", line], input=sql, capture_output=True,
                              text=True, **options)  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    words = [bin_ / "postgres", "-D", folder.path / "data", "-k", folder.path, "-c",
             "listen_addresses=127.0.0.1,127.0.0.2", "-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "ssl=on", "-c",
             f"ssl_cert_file={folder.path / 'cert.pem'}", "-c", f"ssl_key_file={folder.path / 'key.pem'}"]  # fmt: skip
    with running(folder, lambda port: [*words, "-p", port], lambda port: run_at(port, "SELECT 1", "postgres"), signal.SIGINT) as port:
        run = partial(run_at, port)
        run("CREATE DATABASE test", "postgres")
        run("CREATE DATABASE guarded", "postgres")
        yield Server(port, f"jdbc:postgresql://127.0.0.1:{port}/test", run, ca)


@contextmanager
def mariadb():
    """MariaDB with the user "me", the user "guarded", who must come with TLS, and the database "test"."""
    program = shutil.which("mariadbd", path=f"{os.environ['PATH']}:/usr/sbin")
    install, client = shutil.which("mariadb-install-db"), shutil.which("mariadb")
    if not program or not install or not client:
        raise Missing("MariaDB is not installed (scripts/install_deps.sh test)")
    folder = Folder()
    folder.call(install, "--no-defaults", f"--datadir={folder.path / 'data'}", "--auth-root-authentication-method=normal",
                "--skip-test-db", "--innodb-log-file-size=4M")  # fmt: skip
    socket_ = folder.path / "s"
    ca = certify(folder)

    def run(sql, database="test"):
        return folder.call(client, "--no-defaults", f"--socket={socket_}", "-u", "root", database, input=sql)

    words = [program, "--no-defaults", f"--datadir={folder.path / 'data'}",
             "--bind-address=127.0.0.1,127.0.0.2", f"--ssl-cert={folder.path / 'cert.pem'}", f"--ssl-key={folder.path / 'key.pem'}",
             f"--socket={socket_}", "--innodb-log-file-size=4M", "--innodb-flush-log-at-trx-commit=0",
             f"--pid-file={folder.path / 'pid'}"]  # fmt: skip
    # Whoever answers at the socket is the server that has the port, too.
    with running(folder, lambda port: [*words, f"--port={port}"], lambda _: run("SELECT 1", "mysql")) as port:
        run(f"CREATE DATABASE test; CREATE USER me@'%' IDENTIFIED BY '{PASSWORD}'; GRANT ALL ON test.* TO me@'%';"
            f"CREATE USER guarded@'%' IDENTIFIED BY '{PASSWORD}' REQUIRE SSL; GRANT ALL ON test.* TO guarded@'%'", "mysql")  # fmt: skip
        yield Server(port, f"jdbc:mysql://127.0.0.1:{port}/test", run, ca)
