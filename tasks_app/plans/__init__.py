"""What the registry itself has measured, and the plans that follow from it."""
