"""Jobs of mpirun, and what they say."""
import subprocess
import sys

FOVEA = sys.argv[1]
MPIRUN = ["mpirun", "-q", "--oversubscribe", "--allow-run-as-root"]


def run(command, want=0, stdin=b"", timeout=600):
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=timeout)
    said = done.stderr.decode()
    assert done.returncode == want, f"{command}: expected {want}, got {done.returncode}: {said}"
    return done.stdout.decode(), said


def ranks(n, *arguments, **how):
    return run([*MPIRUN, "-n", str(n), FOVEA, *arguments], **how)


def parts(*each, **how):
    """Ranks that are each given arguments of their own."""
    command = MPIRUN[:]
    for arguments in each:
        command += [":"] * (len(command) > len(MPIRUN)) + ["-n", "1", FOVEA, *arguments]
    return run(command, **how)


def runs(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False
