"""Stage 2: one SPDX identifier out of three fields that may each say it differently."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from asyncpoll.inspection.findings import Finding
from asyncpoll.inspection.gather import Installed

_SPDX_BY_NAME = {
    "Apache 2": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache Software 2.0": "Apache-2.0",
    "BSD 2 Clause": "BSD-2-Clause",
    "BSD Simplified": "BSD-2-Clause",
    "BSD 3 Clause": "BSD-3-Clause",
    "BSD New": "BSD-3-Clause",
    "BSD Modified": "BSD-3-Clause",
    "Boost Software 1.0 BSL-1.0": "BSL-1.0",
    "CC0 1.0 Universal CC0 1.0 Public Domain Dedication": "CC0-1.0",
    "Eclipse Public 2.0 EPL-2.0": "EPL-2.0",
    "European Union Public 1.2 EUPL 1.2": "EUPL-1.2",
    "GNU Affero General Public v3": "AGPL-3.0-only",
    "GNU Affero General Public v3 or later AGPLv3+": "AGPL-3.0-or-later",
    "GNU General Public v2 GPLv2": "GPL-2.0-only",
    "GNU General Public v2 or later GPLv2+": "GPL-2.0-or-later",
    "GNU General Public v3 GPLv3": "GPL-3.0-only",
    "GNU General Public v3 or later GPLv3+": "GPL-3.0-or-later",
    "GNU Lesser General Public v2 LGPLv2": "LGPL-2.0-only",
    "GNU Lesser General Public v2 or later LGPLv2+": "LGPL-2.0-or-later",
    "GNU Lesser General Public v3 LGPLv3": "LGPL-3.0-only",
    "GNU Lesser General Public v3 or later LGPLv3+": "LGPL-3.0-or-later",
    "ISC ISCL": "ISC",
    "Expat": "MIT",
    "MIT": "MIT",
    "MIT No Attribution MIT-0": "MIT-0",
    "MPL 2.0": "MPL-2.0",
    "Mozilla Public 2.0": "MPL-2.0",
    "Mozilla Public 2.0 MPL 2.0": "MPL-2.0",
    "PSF": "PSF-2.0",
    "Python Software Foundation": "PSF-2.0",
    "Unlicense Unlicense": "Unlicense",
    "Universal Permissive UPL": "UPL-1.0",
    "zlib libpng": "Zlib",
    # These name a family and leave open which member is meant, so no SPDX licence would be true.
    "Apache": "LicenseRef-Apache",
    "Apache Software": "LicenseRef-Apache",
    "BSD": "LicenseRef-BSD",
    "GPL": "LicenseRef-GPL",
    "GNU General Public GPL": "LicenseRef-GPL",
    "LGPL": "LicenseRef-LGPL",
    "GNU Library or Lesser General Public LGPL": "LicenseRef-LGPL",
    "Other Proprietary": "LicenseRef-Proprietary",
    "Proprietary": "LicenseRef-Proprietary",
    "Public Domain": "LicenseRef-Public-Domain",
}


def _key(name: str) -> str:
    """Reduce a name to its telling words in a fixed order: "The 3-Clause BSD Licence" and so on."""
    words = re.findall(r"[a-z]*\d+(?:\.\d+)*\+?|[a-z]+\+?", name.lower())
    return " ".join(sorted(set(words) - {"the", "license", "licence", "version"}))


_SPDX_BY_KEY = {_key(name): spdx for name, spdx in _SPDX_BY_NAME.items()}


@dataclass(frozen=True, slots=True)
class Licence:
    """A normalised identifier ("" if none follows), and the words and field it follows from."""

    identifier: str
    field: str
    stated: str


def licence_of(installed: Installed) -> Licence:
    """Choose the first field that names an exact licence, else the first that names a family.

    Fields in order: License-Expression (PEP 639), License, the licence classifiers. Several
    classifiers don't say whether "and" or "or" joins them, so no identifier follows from those.
    """
    stated = list(_stated(installed))
    known = [licence for licence in stated if licence.identifier]
    exact = [licence for licence in known if not licence.identifier.startswith("LicenseRef-")]
    return next(iter(exact or known or stated), Licence("", "", ""))


def invalid_expression(installed: Installed) -> Iterator[Finding]:
    """Find a License-Expression that is no valid SPDX expression."""
    expression = installed.licence_expression
    if expression and not _canonical(expression):
        yield Finding("invalid", "License-Expression", f"{expression!r} is not valid SPDX")


def _stated(installed: Installed) -> Iterator[Licence]:
    if expression := installed.licence_expression:
        yield Licence(_canonical(expression), "License-Expression", expression)
    if name := installed.licence:
        yield Licence(_identifier(name), "License", name)
    names = [classifier.split(" :: ")[-1] for classifier in installed.classifiers]
    if names := [name for name in names if name != "OSI Approved"]:
        identifier = _identifier(names[0]) if len(names) == 1 else ""
        yield Licence(identifier, "Classifier", "; ".join(names))


def _identifier(name: str) -> str:
    return _canonical(name) or _SPDX_BY_KEY.get(_key(name), "")


def _canonical(expression: str) -> str:
    try:
        return canonicalize_license_expression(expression)
    except InvalidLicenseExpression:
        return ""
