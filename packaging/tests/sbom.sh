#!/bin/sh
# The list of what the tree is made of: valid, of this very tree, and as docs/licences.md says.
set -eu
cd "$(dirname "$0")/../.."
. packaging/testing.sh
needs python3 cargo
list=$out/$name.cdx.json
[ -f "$list" ] || failed "$list is missing"

# of the commit that the tree is of, be it the one that is checked out or an earlier one
SOURCE_DATE_EPOCH=$(date -u -d "$(sed -n 's/.*"timestamp": "\(.*\)".*/\1/p' "$list")" +%s)
packaging/sbom.py "$tree" "$scratch/again.json"
cmp "$list" "$scratch/again.json" || failed "made again of the same tree it is another"
passed "the same tree gives the same bytes"

if python3 -m venv "$scratch/venv" &&
    "$scratch/venv/bin/pip" -q install 'cyclonedx-python-lib[json-validation]>=8' license-expression >/dev/null 2>&1; then
    "$scratch/venv/bin/python" - "$list" <<'EOF' || failed "$list is not valid"
import json, sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from license_expression import get_spdx_licensing

text = open(sys.argv[1]).read()
wrong = JsonStrictValidator(SchemaVersion.V1_5).validate_str(text)
if wrong is not None:
    sys.exit(str(wrong))
spdx = get_spdx_licensing()
for component in json.loads(text)["components"]:
    for licence in component.get("licenses", []):
        found = spdx.validate(licence["expression"])
        if found.errors:
            sys.exit(f"{component['name']}: {found.errors}")
EOF
    passed "valid CycloneDX 1.5, licences are SPDX expressions"
else
    skipped "validation: PyPI has no cyclonedx-python-lib to install here"
fi

# Messages of panics name the crate that they are in: what the command really contains.
python3 - "$list" "$tree" docs/licences.md <<'EOF' || failed "see above"
import hashlib, json, pathlib, re, sys

document, tree = json.load(open(sys.argv[1])), pathlib.Path(sys.argv[2])
text = pathlib.Path(sys.argv[3]).read_text("utf-8")
components = document["components"]
crates = {c["name"]: c for c in components if c.get("purl", "").startswith("pkg:cargo/")}
wrong = []
names = {f"{c['name']}-{c['version']}" for c in components if c.get("scope") == "required"}
seen = {m.decode() for m in re.findall(rb"/registry/src/[^/\0]+/([A-Za-z0-9_+.-]+)/", (tree / "bin/lapscope").read_bytes())}
assert len(seen) > 20, seen
wrong += [f"the command has {one} in it, which is not listed" for one in sorted(seen - names)]
for file in (c for c in components if c["type"] == "file"):
    if hashlib.sha256((tree / file["name"]).read_bytes()).hexdigest() != file["hashes"][0]["content"]:
        wrong.append(f"{file['name']} has another sum")
own = {crate for crate in crates if crate.split("-")[0] == "lapscope"}

def terms(licence):
    return frozenset(re.findall(r"[A-Za-z0-9.-]{3,}", licence.replace("LLVM exception", "LLVM-exception"))) - {"and", "AND", "WITH", "with"}

rows = {}
for row in re.findall(r"^\| (.*?) \| (.*?) \|$", text.split("## Rust crates")[1], re.M):
    for crate in row[1].split(","):
        crate, _, more = crate.strip().partition(" (and ")
        rows[crate] = terms(row[0] + " " + more)
for crate, component in sorted(crates.items()):
    if crate in own:
        continue
    licence = component["licenses"][0]["expression"]
    if crate not in rows:
        wrong.append(f"docs/licences.md lacks {crate}, {licence}")
    elif rows[crate] != terms(licence):
        wrong.append(f"docs/licences.md: {crate} is {licence}, not {sorted(rows[crate])}")
wrong += [f"docs/licences.md has {crate}, which is no longer linked" for crate in sorted(rows.keys() - crates.keys() - {"crates", "---"})]
for one in wrong:
    print(one, file=sys.stderr)
sys.exit(bool(wrong))
EOF
passed "every crate in the command is listed, sums are the tree's, docs/licences.md agrees"
