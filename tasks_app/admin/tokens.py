"""The list of tokens, the page that makes one and shows it once, and the action that revokes."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypedDict

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString

from tasks_app.admin.accounting import Steered
from tasks_app.admin.display import NOTHING, badge, moment
from tasks_app.admin.steering import Button, SteeringAdmin
from tasks_app.errors import InvalidScope
from tasks_app.models import Token
from tasks_app.store import make_token, revoke_token
from tasks_app.store.driver import run
from tasks_app.tokens import ALL_SCOPES, check_scope, issue

if TYPE_CHECKING:
    from datetime import datetime

    from django_stubs_ext import WithAnnotations

    class _Seen(TypedDict):
        now: datetime

    SeenToken = WithAnnotations[Token, _Seen]

_LONGEST_DAYS = 36_525


class TokenForm(forms.ModelForm):
    """What a token is made from. Its secret is nobody's choice."""

    scopes = forms.CharField(
        initial="submit, read, cancel",
        help_text=(
            f"Comma-separated, of {', '.join(sorted(ALL_SCOPES))}, and claim:QUEUE for executors."
        ),
    )
    days = forms.IntegerField(
        initial=90,
        min_value=1,
        max_value=_LONGEST_DAYS,
        required=False,
        help_text="Empty: it never expires.",
    )

    class Meta:
        model = Token
        fields = ("label", "owner")
        help_texts = {
            "owner": "Whose tasks it submits and sees; empty for those enqueued without one."
        }

    def clean_scopes(self) -> list[str]:
        """The scopes, as a list."""
        scopes = [
            scope.strip() for scope in self.cleaned_data["scopes"].split(",") if scope.strip()
        ]
        if not scopes:
            raise ValidationError("Name at least one scope.")
        try:
            return [check_scope(scope) for scope in scopes]
        except InvalidScope as error:
            raise ValidationError(str(error)) from error


def _revoke(token: Token) -> Steered:
    if run(revoke_token(token.pk)):
        return Steered(str(token), "Revoked {them}")
    return Steered(str(token), skipped="revoked before")


class TokenAdmin(SteeringAdmin):
    """Tokens, the newest first. They are made and revoked; nothing of them is ever edited, and no secret is kept."""

    form = TokenForm
    list_display = (
        "__str__",
        "label",
        "owner",
        "scope_list",
        "state",
        "created",
        "expires",
        "used",
    )
    list_display_links = ("__str__",)
    search_fields = ("id", "owner", "label")
    sortable_by = ()
    ordering = ("-created_at",)
    actions = ("revoke_selected",)
    pk_converter = "slug"
    buttons = (
        Button("revoke", "Revoke", _revoke, "revoke", lambda token: token.revoked_at is None),
    )
    fieldsets = (
        (
            None,
            {
                "fields": (
                    ("label", "owner"),
                    ("scope_list", "state"),
                    ("created", "expires", "revoked", "used"),
                )
            },
        ),
    )

    def has_add_permission(self, request: HttpRequest) -> bool:
        """May this user make tokens, which act for whatever owner they name?"""
        return request.user.has_perm("tasks_app.add_token")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """May this user revoke tokens?"""
        return request.user.has_perm("tasks_app.revoke_token")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """What can be chosen, or what is known."""
        if obj is None:
            return ((None, {"fields": ("label", "owner", "scopes", "days")}),)
        return super().get_fieldsets(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """Everything, once it exists."""
        return [] if obj is None else super().get_readonly_fields(request, obj)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Make the token; `response_add` shows it."""
        days = form.cleaned_data["days"]
        lifetime = None if days is None else timedelta(days=days).total_seconds()
        issued = issue(obj.owner, form.cleaned_data["scopes"], lifetime, obj.label)
        run(make_token(issued.new))
        obj.pk = issued.new.id
        request.issued = issued  # type: ignore[attr-defined]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> HttpResponse:
        """With one button: after each token its own page is shown, and there is nothing to edit."""
        context.update(show_save_and_continue=False, show_save_and_add_another=False)
        return super().render_change_form(request, context, *args, **options)

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: Any = None
    ) -> HttpResponse:
        """The one page that ever has the token. Not a message after a redirect, which would be kept in a cookie."""
        issued = request.issued  # type: ignore[attr-defined]
        # Django lets nobody cache a page of the admin.
        return self.page(
            request, "token/issued.html", "Token", issued=issued, page=self.url_of(Token, obj.pk)
        )

    @admin.action(description="Revoke selected tokens", permissions=["revoke"])
    def revoke_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """End them in every process."""
        self.steer(request, queryset, _revoke)

    @admin.display(description="state")
    def state(self, token: SeenToken) -> SafeString:
        """Is it good?"""
        if token.revoked_at is not None:
            return badge("revoked", "cancelled")
        if token.expires_at is not None and token.expires_at <= token.now:
            return badge("expired", "stalled")
        return badge("active", "success")

    @admin.display(description="scopes")
    def scope_list(self, token: SeenToken) -> str:
        """What it may."""
        return ", ".join(map(str, token.scopes))

    @admin.display(description="created")
    def created(self, token: SeenToken) -> str:
        """When it was made."""
        return moment(token.created_at)

    @admin.display(description="expires")
    def expires(self, token: SeenToken) -> str:
        """Until when it is good by itself."""
        return "never" if token.expires_at is None else moment(token.expires_at)

    @admin.display(description="revoked")
    def revoked(self, token: SeenToken) -> str:
        """When it was ended."""
        return moment(token.revoked_at)

    @admin.display(description="last used")
    def used(self, token: SeenToken) -> str:
        """To within a quarter of an hour."""
        return NOTHING if token.last_used_at is None else moment(token.last_used_at)
