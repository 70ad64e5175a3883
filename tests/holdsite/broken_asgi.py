"""An application that can't be imported."""

raise RuntimeError("this application is broken")
