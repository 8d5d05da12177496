"""Write the parts of the documentation that are drawn from the code.

``python docs/make_docs.py`` writes the generated pages of ``reference/``, and fills every block of
a page between ``<!-- generated: NAME -->`` and ``<!-- end -->``, and the types and defaults in
the tables of parameters.
``tests/end_to_end/test_docs.py`` fails when a file differs from what this script would write.
"""

import json
import re
from pathlib import Path

from generators.blocks import block
from generators.commands import commands
from generators.errors import error_page
from generators.messages import message_page
from generators.modules import module_page
from generators.parameters import with_kinds
from generators.privacy_report import privacy_report
from generators.python import python_page
from generators.study_fields import study_fields

from consortium.study.reader import study_schema

HERE = Path(__file__).parent
_BLOCK = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def render(folder: Path) -> dict[Path, str]:
    """Work out every generated file.

    Parameters
    ----------
    folder : Path
        The documentation; only read.

    Returns
    -------
    dict of Path to str
        What each file should hold.

    Raises
    ------
    KeyError
        If a page has a block of an unknown name.
    """
    schema, reference = study_schema(), folder / "reference"
    made = {
        reference / "study.schema.json": json.dumps(schema, indent=1) + "\n",
        reference / "study-fields.md": study_fields(schema),
        reference / "commands.md": commands(),
        reference / "errors.md": error_page(),
        reference / "messages.md": message_page(),
        reference / "modules.md": module_page(),
        reference / "privacy-report.md": privacy_report(),
        reference / "python.md": python_page(),
    }
    beside = [folder.parent / name for name in ("README.md", "configs/README.md")]
    for page in (*sorted(folder.rglob("*.md")), *filter(Path.exists, beside)):
        text = page.read_text(encoding="utf-8")
        filled = _BLOCK.sub(lambda m: f"{m[1]}\n{block(m[2], page)}\n{m[3]}", text)  # noqa: B023
        filled = with_kinds(page, filled)
        if _BLOCK.search(text) or filled != text:
            made[page] = filled
    return made


def main() -> None:
    """Write every generated file."""
    for path, text in render(HERE).items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
