"""A real Slurm of one node, of Debian's packages: own folder, own ports, all on the loopback address.

Its daemons need root, and no database. They end with the `with` block; of a test process that is killed
they see the end by themselves.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

VARIABLE = "PI3NN_SYSTEM_TESTS"
system = pytest.mark.skipif(
    os.environ.get(VARIABLE) != "1",
    reason=f"starts daemons of the system as root: set {VARIABLE}=1 on a machine that is for tests",
)
"""Marks tests that need it."""

_CONFIGURATION = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
# The second is also how long a job that is queued again has to wait.
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2
# A node that is lost is noticed soon, and welcome when it is back.
SlurmdTimeout=8
ReturnToService=2
KillWait=2
MinJobAge=3600
# Whatever the machine has: two cores of it are enough for all that tests do.
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=16000 State=UNKNOWN
PartitionName=cpu Nodes={host} Default=YES State=UP
"""
_LIVE = {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING"}

# Its input ends when the tests' process does, even if that is killed: then it ends what is left.
_WATCHER = "read -r _; scancel --me; sleep 5; kill -9 $(cat {folder}/*.pid); rm -rf {folder}"


class Cluster:
    """Slurm as long as it runs, and commands in folders that it sees."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        here = str(Path(sys.executable).parent)
        self.environment = {
            **os.environ,
            "SLURM_CONF": str(folder / "slurm.conf"),
            "PATH": os.pathsep.join([here, os.environ["PATH"], "/usr/sbin"]),
            "PYTHONPATH": str(REPOSITORY),
        }

    def start(self) -> None:
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        (self.folder / "munge.key").write_bytes(os.urandom(1024))
        (self.folder / "munge.key").chmod(0o600)
        host, (controller, node) = socket.gethostname().partition(".")[0], _free_ports(2)
        text = _CONFIGURATION.format(
            host=host, controller_port=controller, node_port=node, folder=self.folder
        )
        (self.folder / "slurm.conf").write_text(text)
        files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log",
                 "seed-file": "seed"}  # fmt: skip
        places = [f"--{option}={self.folder}/munge.{end}" for option, end in files.items()]
        self.run("munged", "--force", *places)
        self.run("slurmctld")
        self.start_node()

    def start_node(self) -> None:
        self.run("slurmd")
        until(lambda: self.run("sinfo", "-h", "-o", "%T").strip() in ("idle", "mixed"), 60)

    def lose_node(self) -> None:
        """As if its power were gone: nothing that ran there does any more."""
        _kill(int((self.folder / "slurmd.pid").read_text()))
        for pid in self.of_jobs():
            _kill(pid)

    def stop(self) -> None:
        for pid in self.of_jobs():
            _kill(pid)
        for name in ("slurmd", "slurmctld", "munge"):
            with contextlib.suppress(OSError, ValueError):
                _kill(int((self.folder / f"{name}.pid").read_text()))

    def of_jobs(self) -> list[int]:
        """Processes on the node, those of Slurm that guard them among them."""
        found, conf = [], f"SLURM_CONF={self.folder}/slurm.conf".encode()
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                environment = (path / "environ").read_bytes()
                is_step = b"slurmstepd" in (path / "cmdline").read_bytes()
                of_job = b"SLURM_JOB_ID=" in environment or is_step
                if of_job and (conf in environment or str(self.folder).encode() in environment):
                    found.append(int(path.name))
        return found

    def run(self, *command: str) -> str:
        """What a command of Slurm's prints."""
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def states(self) -> dict[str, str]:
        """All jobs by their names; how each stands."""
        table = self.run("squeue", "--array", "--states=all", "-h", "-o", "%i %T")
        return dict(line.split() for line in table.splitlines())

    def live(self) -> list[str]:
        """The names of jobs that wait or run."""
        return [name for name, state in self.states().items() if state in _LIVE]

    def begin(self, folder: Path, *command: str) -> subprocess.Popen[str]:
        """Start a command of the project in `folder`."""
        return subprocess.Popen(
            command, cwd=folder, env=self.environment, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def do(self, folder: Path, *command: str, timeout: float = 240) -> tuple[int, str]:
        """Run one to its end: its exit code, and all that it says."""
        process = self.begin(folder, *command)
        try:
            said, _ = process.communicate(timeout=timeout)
        finally:
            _kill_group(process.pid)
        return process.returncode, said


@contextlib.contextmanager
def one_node() -> Iterator[Cluster]:
    """A cluster with a folder of its own, whose name is short enough for sockets."""
    folder = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    cluster = Cluster(folder)
    watch = ["sh", "-c", _WATCHER.format(folder=folder)]
    pipe, nowhere, environment = subprocess.PIPE, subprocess.DEVNULL, cluster.environment
    with subprocess.Popen(
        watch, stdin=pipe, stderr=nowhere, env=environment, start_new_session=True
    ) as watcher:
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
            watcher.kill()
            shutil.rmtree(folder, ignore_errors=True)


def until(true: Callable[[], object], seconds: float) -> None:
    """Wait for something to be so."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not so after {seconds:.0f} s"
        time.sleep(0.3)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
