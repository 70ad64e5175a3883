"""Labels with a bound to their number."""

from __future__ import annotations

import pytest

from tasks_app.observers.labels import MOST_STRANGERS, OTHER, TaskLabels, failure_label
from tests import sample_tasks


def test_every_declared_type_has_its_name_and_a_hundred_others() -> None:
    """Whatever came before."""
    labels = TaskLabels()
    names = [f"stranger {number}" for number in range(MOST_STRANGERS + 5)]
    assert [labels.label(name) for name in names] == names[:-5] + [OTHER] * 5
    assert labels.label(names[0]) == names[0]
    assert labels.label(names[-1]) == OTHER
    assert labels.label(sample_tasks.add.name) == "sample.add"


@pytest.mark.parametrize(
    ("error", "label"),
    [
        ("HTTP 503", "HTTP 503"),
        ("HTTP 799", "HTTP (other)"),
        ("HTTP ", "HTTP (other)"),
        ("Timeout", "Timeout"),
    ],
)
def test_only_statuses_that_have_a_name_are_told_apart(error: str, label: str) -> None:
    """A receiver may answer with any number."""
    assert failure_label(error) == label
