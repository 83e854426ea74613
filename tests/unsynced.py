"""SQLite does not wait for the disk: what the tests write need not outlive the machine.

A commit to SQLite waits for the disk several times. Without that a killed process still finds all
that it has committed, since the system has it; only a fall of the machine would lose it.
"""

import sqlite3

from sqlalchemy import Engine, event


@event.listens_for(Engine, "connect")
def leave_the_disk_alone(connection, _record):
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous = OFF")
