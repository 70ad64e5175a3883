"""Made-up installations for the tests of the inspection."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
from pathlib import Path
from typing import Any

from asyncpoll.inspection import inspect

Report = dict[str, Any]
Triple = tuple[str, str, str]


class Site:
    """A site-packages directory to install made-up distributions into, as pip would leave them."""

    def __init__(self, prefix: Path) -> None:
        self.path = prefix / "lib" / "python3" / "site-packages"
        self.path.mkdir(parents=True)

    def install(
        self,
        name: str,
        version: str = "1.0",
        contents: dict[str, str] | None = None,
        metadata: str = "",
        extra_lines: str = "",
    ) -> Path:
        """Install a distribution; by default with one package of its own. Returns its dist-info."""
        info = self.path / f"{name}-{version}.dist-info"
        stated = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{metadata}"
        contents = {f"{name}/__init__.py": "x = 1\n"} if contents is None else contents
        record = io.StringIO()
        lines = csv.writer(record, lineterminator="\n")
        for path, text in {**contents, f"{info.name}/METADATA": stated}.items():
            self.write(path, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode()
            lines.writerow([path, f"sha256={digest.rstrip('=')}", len(text.encode())])
        record.write(f"{info.name}/RECORD,,\n{extra_lines}")
        (info / "RECORD").write_text(record.getvalue())
        return info

    def write(self, path: str, text: str) -> Path:
        """Write a file behind RECORD's back."""
        file = self.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def inspect(self, limit: int | None = None) -> Report:
        """Inspect this directory and nothing else."""
        return inspect([str(self.path)], limit, lambda progress, message: None)

    def findings(self) -> list[Triple]:
        """What an inspection finds, as (distribution, kind, subject)."""
        return findings(self.inspect())


def findings(report: Report) -> list[Triple]:
    return [
        (one["name"], finding["kind"], finding["subject"])
        for one in report["distributions"]
        for finding in one["findings"]
    ]


def reasons(report: Report) -> list[str]:
    return [finding["reason"] for one in report["distributions"] for finding in one["findings"]]
