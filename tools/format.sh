#!/bin/sh
# Formats the C++ sources in place; with --check only says which are not formatted (exit code 1).
set -eu
cd "$(dirname "$0")/.."

sources() {
  rooms=$(sed -n '/^[a-z]/s/[ /].*//p' cmake/rooms.txt | sort -u)
  find $rooms tests bench examples \
    \( -name '*.h' -o -name '*.cc' \) -type f 2>/dev/null | sort
}

case "${1:-}" in
  --check) sources | xargs -r clang-format-14 --dry-run --Werror ;;
  '') sources | xargs -r clang-format-14 -i ;;
  *)
    echo "usage: tools/format.sh [--check]" >&2
    exit 2
    ;;
esac
