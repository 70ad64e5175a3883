"""manage.py of the small project."""

import os

from django.core.management import execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.holdsite.settings")
execute_from_command_line()
