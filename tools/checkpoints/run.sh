#!/bin/sh
# Makes checkpoints with Lightning, timm, Ultralytics, Hugging Face's Trainer, PEFT and
# torch.distributed.checkpoint, cuts them with the command, and judges them in their packages: every
# tensor, every optimizer state, the outputs, and the first step of training (check.py).
#
#   tools/checkpoints/run.sh [--venv FOLDER] [OPTION...] [NAME...]     all checkpoints, or these
#
#   --venv FOLDER     the environment; made if there is none, from PyPI (6 GB, some minutes)
#   --command PATH    build/release/bin/parsimony
#   --folder FOLDER   where checkpoints lie
#   --page MACHINE    writes docs/results/data/checkpoints.json and its page
#
# Exit code: 1 if a checkpoint was cut wrongly, or refused without naming the tensor.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
venv="${PARSIMONY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/parsimony}/checkpoints/venv"
case ${1:-} in
  -h | --help) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 0 ;;
  --venv) venv=$2; shift 2 ;;
esac
if [ ! -e "$venv/made" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q -r "$here/requirements.txt"
  "$venv/bin/pip" install -q --no-deps ultralytics==8.4.190 ultralytics-thop==2.2.3
  touch "$venv/made"
fi
exec "$venv/bin/python" "$here/check.py" "$@"
