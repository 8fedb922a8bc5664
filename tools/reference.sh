#!/bin/sh
# Makes the reference of the library from the headers that are installed, with Doxygen; a warning fails.
#
#   tools/reference.sh [OUT]     a folder; build/reference unless given. Its index.html lists the headers.
set -eu
case "${1:-}" in
  -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
cd "$(dirname "$0")/.."
command -v doxygen > /dev/null || { echo "reference.sh: doxygen is not installed: tools/setup.sh" >&2; exit 4; }
out=${1:-build/reference}
mkdir -p "$out"
headers=$(cmake -DROOT=include/parsimony -DHEADERS=cmake/public_headers.txt -P cmake/IncludedHeaders.cmake)
main=$(mktemp --suffix=.md)
trap 'rm -f "$main"' EXIT

# The first page: the headers that programs include, each with its own first sentence.
{
  echo '# The library {#mainpage}'
  while read -r line; do
    case "$line" in
      '# '*) heading=${line#'# '} ;;
      '') echo; printed= ;;
      *)
        [ -n "${printed:-}" ] || printf '## %s\n\n' "$heading"
        printed=yes
        printf -- '- @ref %s "parsimony/%s": %s\n' "$line" "$line" "$(sed -n '1s,^// ,,p' "include/parsimony/$line")"
        ;;
    esac
  done < cmake/public_headers.txt
} > "$main"

doxygen - <<DOXYFILE
PROJECT_NAME = Parsimony
OUTPUT_DIRECTORY = "$out"
HTML_OUTPUT = .
GENERATE_LATEX = NO
INPUT = $(printf '%s\n' $headers | sed 's,^,include/parsimony/,' | tr '\n' ' ') $main
STRIP_FROM_PATH = include/parsimony $(dirname "$main")
STRIP_FROM_INC_PATH = include
FULL_PATH_NAMES = YES
EXTRACT_ALL = YES
EXTRACT_STATIC = YES
SHOW_INCLUDE_FILES = NO
SORT_MEMBER_DOCS = NO
HAVE_DOT = NO
MARKDOWN_SUPPORT = YES
MACRO_EXPANSION = YES
ALIASES = "source=@par Source^^"
QUIET = YES
WARN_IF_INCOMPLETE_DOC = NO
EXCLUDE_SYMBOLS = "std::*"
WARN_AS_ERROR = FAIL_ON_WARNINGS
DOXYFILE
