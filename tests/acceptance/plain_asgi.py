"""The project as a user might serve it who has not read about our handler: plain Django."""

from django.core.asgi import get_asgi_application

application = get_asgi_application()
