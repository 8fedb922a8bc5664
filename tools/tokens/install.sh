#!/bin/sh
# Installs the reader of tokenizer.json into the cache.
here=$(dirname "$0")
exec "$here/../npm_cache.sh" tokens "$here"
