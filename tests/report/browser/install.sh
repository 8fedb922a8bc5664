#!/bin/sh
# Installs what drives the browser in the tests, into a cache outside the source tree.
here=$(dirname "$0")
exec "$here/../../../tools/npm_cache.sh" browser "$here" --fetch-retries=0
