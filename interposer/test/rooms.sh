#!/bin/sh
# No file in a room of the recorder includes a header of a room that comes later.
set -eu
recorder=$(cd "$(dirname "$0")/../recorder" && pwd)
later="base spool node store python record sends inject reach profile wrap"
checked=0
for room in $later; do
    later=${later#"$room"}
    later=${later# }
    for other in $later; do
        if grep -n "#include \"\.\./$other/" "$recorder/$room"/*; then
            echo "$room/ must not know $other/" >&2
            exit 1
        fi
    done
    checked=$((checked + $(find "$recorder/$room" -name '*.[ch]' | wc -l)))
done
echo "$checked files"
[ "$checked" = "$(find "$recorder" -name '*.[ch]' | wc -l)" ]
