#!/bin/sh
# Installs the chart library of the report into a cache outside the source tree. Without a network
# this is to fail at once, not after minutes.
here=$(dirname "$0")
exec "$here/../npm_cache.sh" charts "$here" --fetch-retries=0
