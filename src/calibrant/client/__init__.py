"""Clients of the service: retries under the same ids, batches, and a spool while it is away."""

from calibrant.errors import needing

with needing("calibrant.client needs {}, which is not installed", "client"):
    from calibrant.client.asking import Forecast, Previewed, ServiceError, verify_commitment
    from calibrant.client.batcher import AsyncBatcher, Batcher
    from calibrant.client.clients import AsyncClient, Client
    from calibrant.client.spool import Spool
    from calibrant.client.wrapped import Served

__all__ = [
    "AsyncBatcher",
    "AsyncClient",
    "Batcher",
    "Client",
    "Forecast",
    "Previewed",
    "Served",
    "ServiceError",
    "Spool",
    "verify_commitment",
]
