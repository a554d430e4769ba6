"""A store by its address: a file, or a database of PostgreSQL."""

from __future__ import annotations

from calibrant.errors import needed
from calibrant.journal.sql import Store
from calibrant.journal.sqlite import SqliteStore
from calibrant.journal.vault import Vault

PREFIXES = ("postgresql://", "postgres://")


def open_store(
    address: str, *, alone: bool | None, old: bool = False, secret_file: str | None = None
) -> Store:
    """Return the store at an address.

    ``alone`` says whether this process shall be the only one to add events; None is for who adds
    none, and ``old`` whether tables of an earlier version will do.
    ``secret_file`` holds the key of a store whose secrets are sealed.
    """
    vault = Vault(secret_file)
    if not address.startswith(PREFIXES):
        return SqliteStore(address, alone=alone, old=old, vault=vault)
    needed("psycopg", "PostgreSQL needs psycopg", "postgres")
    from calibrant.journal.postgres import PostgresStore

    return PostgresStore(address, alone=alone, old=old, vault=vault)
