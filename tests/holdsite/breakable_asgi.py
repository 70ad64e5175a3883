"""The small project, which can't be imported any more while a file exists: a release that is broken."""

import os
from pathlib import Path

if Path(os.environ["HOLDSITE_BREAKS_WITH"]).exists():
    raise RuntimeError("this release is broken")

from tests.holdsite.asgi import application as application
