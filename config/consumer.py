"""Celery's consumer, which lets go of messages with the connection that they came by."""

from __future__ import annotations

from celery.worker import consumer


class Consumer(consumer.Consumer):
    def on_connection_error_after_connected(self, exc: Exception) -> None:
        # Put back where there is no broker any more, they would be written to files instead.
        if connection := self.connection:
            for channel in getattr(connection.transport, "channels", ()):
                channel.do_restore = False
        super().on_connection_error_after_connected(exc)
