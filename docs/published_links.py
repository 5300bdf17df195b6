"""Addresses for a release: those of the README's links, which lead nowhere on an index, and of the project.

``python docs/published_links.py REPOSITORY TAG`` writes both to the files of a checkout, from which the workflow that
publishes then builds; a clone has neither, as it does not know where it lies.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def with_addresses(readme: str, project: str, repository: str, tag: str) -> tuple[str, str]:
    """Return README.md with absolute links and pictures, and pyproject.toml with the project's addresses.

    Args:
        readme: the text of the one.
        project: of the other.
        repository: its address.
        tag: of the release, at which the files are linked.
    """

    def absolute(found: re.Match[str]) -> str:
        picture, text, path = found.groups()
        return f"{picture}[{text}]({repository}/{'raw' if picture else 'blob'}/{tag}/{path})"

    addresses = {"Source": repository, "Issues": f"{repository}/issues"}
    addresses["Changelog"] = f"{repository}/blob/{tag}/CHANGELOG.md"
    urls = "\n".join(f'{name} = "{address}"' for name, address in addresses.items())
    readme = re.sub(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)", absolute, readme)
    return readme, project.replace("\n[project.scripts]\n", f"\n[project.urls]\n{urls}\n\n[project.scripts]\n")


if __name__ == "__main__":
    files = [ROOT / "README.md", ROOT / "pyproject.toml"]
    texts = with_addresses(*(file.read_text(encoding="utf-8") for file in files), *sys.argv[1:])
    for file, text in zip(files, texts, strict=True):
        file.write_text(text, encoding="utf-8")
