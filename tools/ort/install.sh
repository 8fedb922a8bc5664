#!/bin/sh
# Installs the oracle's one dependency, ONNX Runtime, into a cache outside the source tree. Its
# post-install script, which is left out, only downloads GPU libraries; the CPU ones are in the
# package.
here=$(dirname "$0")
exec "$here/../npm_cache.sh" ort "$here"
