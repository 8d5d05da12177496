"""What the fields of all kinds of views have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

Label = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
ViewName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]{0,31}$")]
BesideName = Annotated[str, StringConstraints(min_length=1, max_length=200)]
