#!/bin/sh
# Makes checkpoints with Lightning, timm, Ultralytics, Hugging Face's Trainer, PEFT and
# torch.distributed.checkpoint, cuts them with the command, and judges them in their packages: every
# tensor, every optimizer state, the outputs, and the first step of training (check.py).
#
#   tools/checkpoints/run.sh [OPTION...] [NAME...]     all checkpoints, or these
#
#   --command PATH    build/release/bin/parsimony
#   --venv FOLDER     the environment; made if there is none, from PyPI (6 GB, some minutes)
#   --folder FOLDER   where checkpoints lie
#   --page MACHINE    writes docs/results/data/checkpoints.json and its page
#
# Exit code: 1 if a checkpoint was cut wrongly, or refused without naming the tensor.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)

cache="${PARSIMONY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/parsimony}/checkpoints"
venv=$cache/venv
folder=$cache/made
command=${PARSIMONY_COMMAND:-$root/build/release/bin/parsimony}
machine=
names=
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '2,15s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --command) command=$2; shift ;;
    --venv) venv=$2; shift ;;
    --folder) folder=$2; shift ;;
    --page) machine=$2; shift ;;
    -*) echo "run.sh: unknown option $1; see --help" >&2; exit 2 ;;
    *) names="$names $1" ;;
  esac
  shift
done

if [ ! -e "$venv/made" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q -r "$root/tools/checkpoints/requirements.txt"
  "$venv/bin/pip" install -q --no-deps ultralytics==8.4.190 ultralytics-thop==2.2.3
  touch "$venv/made"
fi
exec "$venv/bin/python" "$root/tools/checkpoints/check.py" --command "$command" --folder "$folder" \
  ${machine:+--page "$machine"} $names
