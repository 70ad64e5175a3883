"""What an operator can do: to one row by a button of its page, to many by an action of the list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import BadRequest, PermissionDenied, ValidationError
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.urls import URLPattern, path

from tasks_app.admin.accounting import Steered, account, steer
from tasks_app.admin.readonly import ReadOnlyAdmin

Verb = Callable[[Any], Steered]


@dataclass(frozen=True, slots=True)
class Button:
    """A button of a row's page: its address ends in `word`, and it is there while `is_useful` says so of the row.

    `permission` names the method that says who may press it: `cancel` is `has_cancel_permission`.
    """

    word: str
    label: str
    verb: Verb
    permission: str
    is_useful: Callable[[Any], bool]


class SteeringAdmin(ReadOnlyAdmin):
    """A read-only admin whose rows have verbs, each for users with the permission to do it."""

    buttons: Sequence[Button] = ()
    pk_converter = "uuid"

    def get_urls(self) -> list[Any]:
        """The buttons' addresses, before Django's, whose last one takes everything."""
        return [*map(self._address, self.buttons), *super().get_urls()]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> HttpResponse:
        """The page, with the buttons that can do something."""
        row = context.get("original")
        context["buttons"] = [
            {
                "word": button.word,
                "label": button.label,
                "url": self.address_of(button.word, row.pk),
            }
            for button in self.buttons
            if row is not None and button.is_useful(row) and self._may(request, button)
        ]
        return super().render_change_form(request, context, *args, **options)

    def response_action(self, request: HttpRequest, *args: Any, **options: Any) -> Any:
        """An action over what was ticked. Raises BadRequest for what can be no row, and so is not of our page."""
        for each in request.POST.getlist(ACTION_CHECKBOX_NAME):
            if not self._can_be_row(each):
                raise BadRequest("What was ticked is nothing that is listed here.")
        return super().response_action(request, *args, **options)

    def row_of(self, request: HttpRequest, pk: Any) -> Any:
        """What a button is pressed for. Raises Http404."""
        row = self.get_queryset(request).filter(pk=pk).first()
        if row is None:
            raise Http404
        return row

    def page_after(self, pk: Any, steered: Steered) -> str:
        """Where a button leads."""
        return self.url_of(self.model, pk)

    def steer(self, request: HttpRequest, rows: Iterable[Any], verb: Verb) -> list[Steered]:
        """Do `verb` to each row, and say what was done and what was skipped."""
        results = steer(rows, verb, lambda row, line: self.log_change(request, row, line))
        for was_done, sentence in account(results, str(self.opts.verbose_name)):
            self.message_user(request, sentence, messages.SUCCESS if was_done else messages.WARNING)
        return results

    def _address(self, button: Button) -> URLPattern:
        def press(request: HttpRequest, pk: Any) -> HttpResponse:
            if request.method != "POST":
                return HttpResponseNotAllowed(["POST"])
            if not self._may(request, button):
                raise PermissionDenied
            [steered] = self.steer(request, [self.row_of(request, pk)], button.verb)
            return HttpResponseRedirect(self.page_after(pk, steered))

        return path(
            f"<{self.pk_converter}:pk>/{button.word.replace('_', '-')}/",
            self.admin_site.admin_view(press),
            name=self.url_name(button.word),
        )

    def _can_be_row(self, pk: str) -> bool:
        try:
            self.opts.pk.clean(pk, None)
        except ValidationError:
            return False
        return "\x00" not in pk

    def _may(self, request: HttpRequest, button: Button) -> bool:
        allowed: bool = getattr(self, f"has_{button.permission}_permission")(request)
        return allowed
