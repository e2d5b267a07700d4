#!/usr/bin/env bash
# Builds these pages as a site with search, and the C++ API from the public headers, into the folder that is named (by
# default build-site at the root). Installs what it needs from Debian's packages. To read it, search included:
#   bash docs/site/build.sh && python3 -m http.server -d build-site
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
site=$(mkdir -p "${1:-$root/build-site}" && cd "${1:-$root/build-site}" && pwd)
bash "$root/tools/setup.sh" --only mkdocs mkdocs-material doxygen cmake

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The tree as GitHub shows it, so that links between pages and to programs hold.
mkdir "$work/pages"
cp "$root/README.md" "$work/pages/index.md" && cp "$root/CONTRIBUTING.md" "$work/pages/"
cp -r "$root/docs" "$root/examples" "$work/pages/"
rm -r "$work/pages/docs/site"
cp "$here/mkdocs.yml" "$work/" && cp "$here/wide.css" "$work/pages/"
# The headers that are installed, and no others.
cmake -DCMAKE_INSTALL_PREFIX="$work/headers" -Dsource="$root" -Dheaders=include/lathe \
      -P "$root/tools/cmake/install_headers.cmake" >/dev/null
(cd "$work" && {
  cat "$here/Doxyfile"
  printf '%s\n' "INPUT = headers" "STRIP_FROM_PATH = headers/include" "INCLUDE_PATH = headers/include"
} | doxygen -) >/dev/null
mkdir "$work/pages/api" && cp -r "$work/api/." "$work/pages/api/"
python3 "$here/names.py" "$work/xml" api >"$work/pages/names.md"
# What it warns of is an error, as with doxygen.
mkdocs build --strict --clean --config-file "$work/mkdocs.yml" --site-dir "$site" 2>"$work/log" || {
  cat "$work/log" >&2
  exit 1
}
echo "$site/index.html"
