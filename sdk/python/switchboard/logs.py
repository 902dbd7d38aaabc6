"""Logs on standard error, as JSON that the kernel reads (hclog)."""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import datetime, timezone

_LEVELS = {"trace": logging.DEBUG, "debug": logging.DEBUG, "warn": logging.WARNING, "error": logging.ERROR}


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        level = record.levelname.lower()
        line = {
            "@level": {"warning": "warn", "critical": "error"}.get(level, level), "@message": record.getMessage(),
            "@module": record.name, "@timestamp": datetime.fromtimestamp(record.created, timezone.utc).isoformat(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def set_up() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    logging.basicConfig(handlers=[handler], force=True)
    logging.getLogger().setLevel(_LEVELS.get(os.environ.get("SWITCHBOARD_LOG_LEVEL", "").lower(), logging.INFO))
