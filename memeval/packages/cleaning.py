"""Removes content that must not leave with a package: secrets, paths, names of machines, private
hosts.
"""

import ipaddress
import re
import shlex
import socket
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from memeval.config.paths import data_dir
from memeval.process.root import project_root
from memeval.results.hosts import URL, host_digest, is_private, replace_host
from memeval.text.personal import IP
from memeval.text.redaction import PATH, map_strings, redacted, strings_in, without_known
from memeval.text.secret_shapes import REDACTED

KINDS = ("secret", "path", "host")
"""Kinds of replaced values."""
SHORTEST_NAME = 5
"""Minimum length of a machine's name that is replaced; a shorter one occurs in ordinary text."""
_WHOLE_PATH = re.compile(r"(?:~?/|[A-Za-z]:[\\/]|\\\\)(?!/)[^\n]*")
_PATH = re.compile(r"(?<![\w/.:~\]-])(?:~?/|[A-Za-z]:\\)[^\s/\\'\",;:)]+[/\\][^\s'\",;:)]+")


class Cleaner:
    """Replaces values, and counts the replacements by kind.

    Settings, commands, notes and errors are memeval's own texts: everything that looks like a
    secret, a path or a host is replaced there. Answers and replies are measured unchanged: only
    known values are replaced there, such as this machine's name and the hosts in the settings.
    """

    def __init__(self, settings: Any) -> None:
        self.counts: Counter[str] = Counter()
        self._names: dict[str, tuple[str, str]] = {}
        """Replacement for each known name, and its kind."""
        folders = [Path.home(), project_root(), data_dir(), Path.cwd()]
        for folder in folders:
            if len(folder.parts) > 2:
                self._names[str(folder)] = (PATH, "path")

        machine = socket.gethostname()
        for name in {machine, machine.partition(".")[0]}:
            if len(name) >= SHORTEST_NAME and not name.isdigit() and name != "localhost":
                self._names[name] = (host_digest(name), "host")

        self._paths: set[str] = set()
        """Paths that `_PATH` does not find in a text, as they have one part, spaces or quotes."""
        self.learn_paths(settings)
        map_strings(settings, self._learn_hosts)
        names = map(re.escape, sorted(self._names, key=len, reverse=True))
        # In a container there may be no name to replace: an empty pattern would match everywhere.
        self._known = re.compile(rf"(?<!\w)(?:{'|'.join(names) or '(?!)'})(?!\w)")

        self.clean_model = cache(self._clean)
        """Cleans the name of a model; kept, because each row has some."""

    def learn_paths(self, value: Any) -> None:
        """Replaces the strings of a JSON value that are paths also inside all own texts."""
        for text in strings_in(value):
            if text != "/" and _WHOLE_PATH.fullmatch(text) and not _PATH.fullmatch(text):
                self._paths.add(text)

        paths = "|".join(map(re.escape, sorted(self._paths, key=len, reverse=True)))
        self._known_paths = re.compile(rf"(?<![\w/.:~\]-])(?:{paths or '(?!)'})(?![\w/\\-])")

    def _learn_hosts(self, text: str) -> str:
        for match in URL.finditer(text):
            host = match["host"].rpartition("@")[2]
            bare = host.partition(":")[0]
            if is_private(match[0]) and len(bare) >= SHORTEST_NAME and bare != "localhost":
                self._names[host] = self._names[bare] = (host_digest(host), "host")

        return text

    def clean_own(self, value: Any) -> Any:
        """A JSON value that memeval or its user wrote."""
        return map_strings(value, self._clean)

    def clean_data(self, value: Any) -> Any:
        """A JSON value that contains texts of data and replies."""
        return map_strings(value, self.text)

    def text(self, text: str) -> str:
        """Text of data or of a reply."""
        clean = without_known(text)
        self._count_secrets(text, clean)
        return self._known.sub(self._replace_known, clean)

    def command(self, command: str) -> str:
        """A command line, word by word."""
        try:
            words = shlex.split(command)
        except ValueError:
            return self._clean(command)

        cleaned = []
        for word in words:
            name, equals, value = word.rpartition("=")
            unquoted = value.replace("\\:", ":")  # as Hydra quotes it in a sweep
            clean = self._clean(unquoted)
            cleaned.append(f"{name}{equals}{value if clean == unquoted else clean}")

        return self._clean(shlex.join(cleaned))

    def _clean(self, text: str) -> str:
        clean = redacted(text)
        self._count_secrets(text, clean)
        if _WHOLE_PATH.fullmatch(clean):
            return self._shorten(clean)

        clean = self._known_paths.sub(lambda match: self._shorten(match[0]), clean)
        clean = URL.sub(self._replace_url, clean)
        clean = self._known.sub(self._replace_known, clean)
        clean = _PATH.sub(lambda match: self._shorten(match[0]), clean)
        return IP.sub(self._replace_ip, clean)

    def _count_secrets(self, before: str, after: str) -> None:
        if before != after:
            self.counts["secret"] += after.count(REDACTED) - before.count(REDACTED)

    def _shorten(self, path: str) -> str:
        self.counts["path"] += 1
        # The name of the file identifies it; the folders reveal the machine.
        name = re.split(r"[/\\]", path.rstrip("/\\"))[-1]
        return f"{PATH}/{name}"

    def _replace_known(self, match: re.Match[str]) -> str:
        replacement, kind = self._names[match[0]]
        self.counts[kind] += 1
        return replacement

    def _replace_url(self, match: re.Match[str]) -> str:
        self.counts["host"] += is_private(match[0])
        return replace_host(match)

    def _replace_ip(self, match: re.Match[str]) -> str:
        try:
            ipaddress.ip_address(match[0])
        except ValueError:
            return match[0]

        self.counts["host"] += 1
        return host_digest(match[0])
