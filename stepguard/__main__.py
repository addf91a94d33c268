"""``python -m stepguard``."""

from __future__ import annotations

import sys

from stepguard.cli import main

sys.exit(main())
