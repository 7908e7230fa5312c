"""Signatures of manifests by SSH keys, as `ssh-keygen -Y` makes and checks them."""

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from memeval.errors import UserError
from memeval.packages.form import NAMESPACE
from memeval.text.shown import one_line

PROGRAM = "ssh-keygen"
LONGEST_S = 120
"""Time limit of the program in seconds: a key on a token waits for a touch."""


def sign(content: bytes, key_file: Path) -> bytes:
    """The signature of `content` by an SSH key, in OpenSSH's form.

    Raises `UserError` without the program, and for a key that it refuses.
    """
    with tempfile.TemporaryDirectory() as folder:
        signed = Path(folder, "manifest")
        signed.write_bytes(content)
        _run(["-Y", "sign", "-f", str(key_file), "-n", NAMESPACE, str(signed)], b"")
        return signed.with_name("manifest.sig").read_bytes()


def signer_of(content: bytes, signature: bytes, allowed_signers: Path | None) -> str | None:
    """Signer of `content`, according to the file of allowed signers; None without such a file.

    Raises `UserError` if the signer is not in the file, or the signature is of other content.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "manifest.sig")
        file.write_bytes(signature)
        if allowed_signers is None:
            _run(["-Y", "check-novalidate", "-s", str(file), "-n", NAMESPACE], content)
            return None

        named = ["-f", str(allowed_signers), "-s", str(file)]
        principals = _run(["-Y", "find-principals", *named], content).splitlines()
        if not principals:
            raise UserError("the signer is not in the file of allowed signers")

        _run(["-Y", "verify", *named, "-n", NAMESPACE, "-I", principals[0]], content)
        return one_line(principals[0], 200)


def _run(arguments: Sequence[str], content: bytes) -> str:
    try:
        done = subprocess.run(
            [PROGRAM, *arguments],
            check=False,
            input=content,
            capture_output=True,
            timeout=LONGEST_S,
        )
    except FileNotFoundError:
        raise UserError(
            f"signatures need {PROGRAM}, which is not on this machine",
            "install OpenSSH 8.2 or newer",
        ) from None
    except subprocess.TimeoutExpired:
        raise UserError(f"{PROGRAM} did not finish within {LONGEST_S} s") from None

    if done.returncode:
        message = (done.stderr or done.stdout).decode(errors="replace")
        raise UserError(f"{PROGRAM}: {one_line(message.strip(), 300)}")

    return done.stdout.decode(errors="replace")
