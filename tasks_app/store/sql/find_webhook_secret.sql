-- find_webhook_secret: an owner's secret as it is kept.
SELECT salt, proof FROM tasks_app_webhooksecret WHERE owner = %(owner)s
