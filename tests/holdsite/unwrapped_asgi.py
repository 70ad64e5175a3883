"""The small project as Django itself would serve it."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.holdsite.settings")
application = get_asgi_application()
