"""Jobs of mpirun, and what they say."""
import os
import subprocess
import sys
import tempfile
import unittest

FOVEA, DEMO, GOLDEN = sys.argv[1:4]
FOLDERS = tempfile.TemporaryDirectory()


def mpirun(n, quiet=True):
    """Starts n ranks. Where jobs share a folder, the end of one removes it while another begins there, which fails then."""
    folder = tempfile.mkdtemp(dir=FOLDERS.name)
    return ["env", f"TMPDIR={folder}", "mpirun", *["-q"] * quiet, "--oversubscribe", "--allow-run-as-root", "-n", str(n)]


def run(command, want=0, stdin=b"", timeout=600):
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=timeout)
    said = done.stderr.decode()
    assert done.returncode == want, f"{command}: expected {want}, got {done.returncode}: {said}"
    return done.stdout.decode(), said


def ranks(n, *arguments, **how):
    return run([*mpirun(n), FOVEA, *arguments], **how)


def parts(*each, **how):
    """Ranks that are each given arguments of their own."""
    command = mpirun(1)
    for i, arguments in enumerate(each):
        command += [":", "-n", "1"] * (i > 0) + [FOVEA, *arguments]
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
