"""Content encodings, undone no further than is wanted: a thousand bytes may stand for a billion. Pure."""

from __future__ import annotations

import zlib
from typing import Final

ACCEPTED: Final = "gzip, deflate"
"""For Accept-Encoding: what a Decoder undoes."""
_KNOWN: Final = frozenset({"gzip", "x-gzip", "deflate"})
# Tells the headers of gzip and of zlib apart by itself; deflate has neither where a server takes its name literally.
_WITH_HEADER, _BARE = zlib.MAX_WBITS | 32, -zlib.MAX_WBITS


class Undecodable(ValueError):
    """An encoding that is not known, or a body that is not in it."""


class Decoder:
    """Undoes the encodings that a Content-Encoding names. Raises Undecodable for more than one: nobody needs it, and
    each multiplies what the one before it made."""

    def __init__(self, named: str) -> None:
        encodings = [one for one in named.lower().replace(" ", "").split(",") if one]
        encodings = [one for one in encodings if one != "identity"]
        if len(encodings) > 1 or not _KNOWN.issuperset(encodings):
            raise Undecodable(f"its encoding is {named!r:.80}; it must be one of {ACCEPTED}")
        self._inflater = zlib.decompressobj(_WITH_HEADER) if encodings else None
        self._has_begun = False

    def decode(self, data: bytes, most: int) -> bytes:
        """What `data` stands for, or the first `most` bytes of it, after which there is no more to be had."""
        if self._inflater is None or not data:
            return data[:most]
        try:
            decoded = self._inflater.decompress(data, most)
        except zlib.error as error:
            if self._has_begun:
                raise Undecodable(f"its encoding is broken: {error}") from error
            self._inflater, self._has_begun = zlib.decompressobj(_BARE), True
            return self.decode(data, most)
        self._has_begun = True
        return decoded
