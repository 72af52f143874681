#!/usr/bin/env python3
"""Holds all Markdown against the tree: relative links lead somewhere, files that are named are there, prose is wrapped;
examples are what a test or a run has printed; every room has a short README; and all together stay short.

    tests/documents.py            names what is wrong; the exit code tells whether anything is
    tests/documents.py --write    takes examples over as their files have them now
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 100

# Rooms: each has a README that says what it is for, what it knows and what must stay true.
ROOMS = (
    *("cli", "crates/*", "packaging", "python"),
    *("interposer/calibrate", "interposer/generate", "interposer/gpu", "interposer/preload", "interposer/recorder/*"),
)
ROOM_WORDS = 300

# Words by hand, as wc -w counts them: of all documents, and of those that are read from top to bottom.
ALL_WORDS = 45_000
MOST_WORDS = {"README.md": 1_200, "docs/user-guide.md": 4_000, "docs/reading-a-report.md": 1_500}
README_LINES = 150
TERMS = 80
# Made by a generator, lists that tests hold against code, or the list of changes, which grows by itself.
MADE = (
    *("docs/coverage.md", "docs/json.md", "docs/licences.md", "docs/options.md", "schema/README.md", "schema/jobs.md"),
    "CHANGELOG.md",
)

# An example: the lines of the file from the first that begins with some words, up to the next that begins with others.
EXAMPLE = re.compile(r'(<!-- example of (\S+), from "(.+?)" to "(.+?)" -->\n```\n)(.*?)\n```', re.DOTALL)
REMEDY = "tests/documents.py --write"
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*)")
# `cli/src/lib.rs`, `cli/src/commands/NAME.rs`: a file by its path from the root; NAME is any name
NAMED = re.compile(r"`((?:cli|crates|docs|examples|interposer|python|schema|tests)/[\w./*{},-]+)`")


def documents():
    folders = [path for path in ROOT.iterdir() if path.is_dir() and path.name not in ("build", "target", ".git")]
    return sorted([*ROOT.glob("*.md"), *(path for folder in folders for path in folder.rglob("*.md"))])


def prose(text):
    """Its lines with their numbers, without code."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, line


def anchors(document):
    """What its headings are called in links."""
    found = (HEADING.match(line) for _, line in prose(document.read_text("utf-8")))
    slug = lambda title: re.sub(r"[^\w\- ]", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", title).lower()).replace(" ", "-")
    return {slug(heading[1]) for heading in found if heading}


def alternatives(path):
    """`a/{b,c}.h` is `a/b.h` and `a/c.h`."""
    braces = re.search(r"\{([^{}]*)\}", path)
    if not braces:
        return [path]
    before, behind = path[: braces.start()], path[braces.end() :]
    return [name for one in braces[1].split(",") for name in alternatives(before + one + behind)]


def wrong_link(document, target):
    if re.match(r"[a-z]+:", target):
        return None
    name, _, anchor = target.partition("#")
    file = (document.parent / name) if name else document
    if not file.exists():
        return "leads nowhere"
    if anchor and file.suffix == ".md" and anchor not in anchors(file):
        return "names a heading that is not there"
    return None


def is_wide(line):
    """Whether a line could be broken; rows of tables, pictures and comments cannot."""
    return len(line) > WIDTH and not line.startswith(("|", "![", "<!--"))


def check(document):
    for number, line in prose(document.read_text("utf-8")):
        where = f"{document.relative_to(ROOT)}:{number}"
        for target in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            if why := wrong_link(document, target):
                yield f"{where}: {target} {why}"
        for path in (path for named in NAMED.findall(line) for path in alternatives(named)):
            if not any(ROOT.glob(path.rstrip("/").replace("NAME", "*"))):
                yield f"{where}: there is no {path}"
        if is_wide(line):
            yield f"{where}: {len(line)} characters, at most {WIDTH}"


def example(name, first, after):
    """The lines of a file that an example shows; nothing where it does not have them."""
    source = ROOT / name
    lines = source.read_text("utf-8").splitlines() if source.exists() else []
    begins = lambda words, least: (at for at, line in enumerate(lines) if at >= least and line.strip().startswith(words))
    begin = next(begins(first, 0), len(lines))
    return "\n".join(lines[begin : next(begins(after, begin + 1), begin)]).rstrip()


def invented(document):
    for _, name, first, after, block in EXAMPLE.findall(document.read_text("utf-8")):
        if block != example(name, first, after):
            yield f"{document.relative_to(ROOT)}: the example from {first!r} is not what {name} has: {REMEDY}"


def write_examples():
    for document in documents():
        text = document.read_text("utf-8")
        made = EXAMPLE.sub(lambda found: f"{found[1]}{example(*found.group(2, 3, 4))}\n```", text)
        if made != text:
            document.write_text(made, "utf-8")


def words(document):
    return len(document.read_text("utf-8").split())


def too_long():
    hand = [document for document in documents() if str(document.relative_to(ROOT)) not in MADE]
    counted = sum(map(words, hand))
    if counted > ALL_WORDS:
        yield f"documents by hand have {counted} words, at most {ALL_WORDS}: what is said twice is said once"
    for name, most in MOST_WORDS.items():
        if (count := words(ROOT / name)) > most:
            yield f"{name}: {count} words, at most {most}"
    if (lines := (ROOT / "README.md").read_text("utf-8").count("\n")) > README_LINES:
        yield f"README.md: {lines} lines, at most {README_LINES}"
    terms = (ROOT / "docs/glossary.md").read_text("utf-8").count("\n**")
    if terms > TERMS:
        yield f"docs/glossary.md: {terms} terms, at most {TERMS}"


def unexplained():
    rooms = [room for pattern in ROOMS for room in sorted(ROOT.glob(pattern)) if room.is_dir()]
    for room in rooms:
        name, readme = room.relative_to(ROOT), room / "README.md"
        count = words(readme) if readme.exists() else 0
        if not count:
            yield f"{name} has no README.md that says what must stay true of it"
        elif count > ROOM_WORDS:
            yield f"{name}/README.md: {count} words, at most {ROOM_WORDS}"


# A type that is written as JSON and is never read back, up to its end; and a field of it that has a key of its own
WRITTEN = re.compile(r"#\[derive\((?![^)]*Deserialize)[^)]*\bSerialize\)\][^;]*?\b(?:struct|enum) \w[^{;]*\{(.*?)^\}", re.M | re.S)
FIELD = re.compile(r"\s(?:pub(?:\([^)]*\))? )?([a-z_]\w*): ")
UNWRITTEN = re.compile(r"//.*|#\[serde\((?:skip|flatten|rename)[(), ]?.*\]\s+[^:]*:(?!:)")
WRITERS = ("measure", "predict", "advise", "watch", "launch")


def undocumented():
    """A key of the JSON that docs/json.md lacks, also where no test comes by it; keys that tests print are held by these."""
    known = set(re.findall(r"\w+", " ".join((ROOT / "docs/json.md").read_text("utf-8").split("`")[1::2])))
    for file in (file for room in WRITERS for file in sorted((ROOT / "crates" / room).glob("src/**/*.rs"))):
        for body in WRITTEN.findall(file.read_text("utf-8")):
            fields = FIELD.findall(UNWRITTEN.sub("", body))
            yield from (f"{file.relative_to(ROOT)}: docs/json.md lacks {field}" for field in fields if field not in known)


def outdated():
    """A key of the JSON that no code writes any more."""
    rows = re.findall(r"(?m)^\| (`[^|]+?) \|", (ROOT / "docs/json.md").read_text("utf-8"))
    keys = {key for row in rows for span in re.findall(r"`([^`]+)`", row) for key in re.findall(r"\w+", span)}
    code = [*ROOT.glob("crates/*/src/**/*.rs"), *ROOT.glob("cli/src/**/*.rs"), *ROOT.glob("interposer/generate/src/*.rs")]
    known = {word for file in code for word in re.findall(r"\w+", file.read_text("utf-8"))}
    yield from (f"docs/json.md: {key} stands nowhere in the code" for key in sorted(keys - known))


def main():
    if "--write" in sys.argv[1:]:
        write_examples()
    troubles = [trouble for document in documents() for trouble in check(document)]
    troubles += [trouble for document in documents() for trouble in invented(document)]
    troubles += unexplained()
    troubles += too_long()
    troubles += [*undocumented(), *outdated()]
    print("\n".join(troubles) if troubles else "all documents hold")
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
