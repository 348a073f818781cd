"""S3 answers to GetBucketNotificationConfiguration, with EventBridge in them."""

from contextlib import AbstractContextManager
from typing import Any

from emulator.moto_services.replacements import replaced


def describing_eventbridge() -> AbstractContextManager[None]:
    """Say that a bucket sends its events to EventBridge, which moto leaves out."""
    from moto.core.responses import ActionResult
    from moto.s3.responses import S3Response

    get = S3Response.get_bucket_notification

    def get_with_eventbridge(response: Any) -> Any:
        found = response.backend.get_bucket_notification_configuration(response.bucket_name)
        if not found or found.event_bridge is None:
            return get(response)
        if found.topic or found.queue or found.cloud_function:
            return _add_member(*get(response))
        response.data["Action"] = "GetBucketNotificationConfiguration"
        return response.serialized(ActionResult({"EventBridgeConfiguration": {}}))

    return replaced(S3Response, get_bucket_notification=get_with_eventbridge)


def _add_member(status: int, headers: dict[str, Any], body: Any) -> tuple[int, dict[str, Any], Any]:
    end = "</NotificationConfiguration>"
    return status, headers, body.replace(end, f"<EventBridgeConfiguration/>{end}")
