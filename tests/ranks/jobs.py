"""Jobs of mpirun, and what they say."""
import os
import subprocess
import sys
import tempfile
import unittest

FOVEA, DEMO, GOLDEN = sys.argv[1:4]
MPIRUN = ["mpirun", "-q", "--oversubscribe", "--allow-run-as-root"]
PLACES = tempfile.TemporaryDirectory(prefix="fovea_")


def start(command, **how):
    """A process with a temporary folder of its own: a user's launchers make and remove one that they share, and fail where another
    removes it in that moment."""
    return subprocess.Popen(command, env={**os.environ, "TMPDIR": tempfile.mkdtemp(dir=PLACES.name)}, **how)


def run(command, want=0, stdin=b"", timeout=600):
    with start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
        try:
            out, said = (text.decode() for text in job.communicate(stdin, timeout))
        except subprocess.TimeoutExpired:
            job.kill()
            raise
    assert job.returncode == want, f"{command}: expected {want}, got {job.returncode}: {said}"
    return out, said


def ranks(n, *arguments, **how):
    return run([*MPIRUN, "-n", str(n), FOVEA, *arguments], **how)


def parts(*each, **how):
    """Ranks that are each given arguments of their own."""
    command = MPIRUN[:]
    for arguments in each:
        command += [":"] * (len(command) > len(MPIRUN)) + ["-n", "1", FOVEA, *arguments]
    return run(command, **how)


def lines_of(said):
    """The lines that the program itself said."""
    return [line for line in said.splitlines() if line.startswith("fovea: ")]


def runs(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class Jobs(unittest.TestCase):
    """A folder of models, and one for what MPI shares."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        # Where Open MPI's ranks share memory, by the names of its versions 4 and 5: /dev/shm is other programs' as well.
        cls.shared = tempfile.TemporaryDirectory(dir="/dev/shm", prefix="fovea_ranks_")
        for module in ("vader", "sm"):
            os.environ[f"OMPI_MCA_btl_{module}_backing_directory"] = cls.shared.name

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()
        cls.shared.cleanup()

    def convert(self, source, *arguments):
        model = os.path.join(self.folder.name, "_".join([os.path.basename(source), *arguments]).replace("--", "") + ".fovea")
        if not os.path.exists(model):
            run([FOVEA, "convert", source, "-o", model, *arguments])
        return model

    @staticmethod
    def end(job):
        if job.poll() is None:
            job.terminate()
        job.communicate(timeout=60)
