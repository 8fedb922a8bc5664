#!/bin/bash
# Trains one small network, cut twice on the way, in two ranks in two network namespaces, joined by a
# link with delay, losses and a rate (link.py), and compares the weights byte by byte with those of
# `train --processes 2`, whose ranks meet on the loopback interface.
#
#   tools/ranks/namespaces.sh [--settings "DELAY,LOSS,RATE ..."] PARSIMONY
#
# DELAY in milliseconds one way, LOSS as a share, RATE in Mbit/s (0: as it comes). By default the link
# is quick, then far, then far and lossy, then slow. At last the link breaks while they train: both
# ranks must end within --rank-timeout. Needs root and /dev/net/tun.
# Prints a table. Exit codes: 0 all the same, 1 one differs or failed, 2 usage, 4 no namespaces.
set -u
self=$0
here=$(cd "$(dirname "$0")" && pwd)

fail() { local code=$1; shift; echo "namespaces.sh: $*" >&2; exit "$code"; }

settings="0,0,0 20,0,0 20,0.01,0 5,0,100"
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$self"; exit 0 ;;
    --settings) [ $# -ge 2 ] || fail 2 "--settings needs a value"; settings=$2; shift ;;
    -*) fail 2 "unknown option $1; see --help" ;;
    *) break ;;
  esac
  shift
done
[ $# -eq 1 ] || fail 2 "usage: namespaces.sh [--settings LIST] PARSIMONY"
parsimony=$(command -v "$1") || fail 2 "no command $1"
parsimony=$(realpath "$parsimony")

work=$(mktemp -d "${TMPDIR:-/tmp}/namespaces-XXXXXX")
export TMPDIR=$work OMP_NUM_THREADS=1
spaces=("ranks$$a" "ranks$$b")
link=
clean() {
  trap - EXIT
  # Only what runs in the two namespaces.
  for space in "${spaces[@]}"; do
    ip netns pids "$space" 2> /dev/null | xargs -r kill -9
  done
  [ -z "$link" ] || kill "$link" 2> /dev/null
  wait
  for space in "${spaces[@]}"; do ip netns del "$space" 2> /dev/null; done
  rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM
for space in "${spaces[@]}"; do
  ip netns add "$space" || fail 4 "cannot make a network namespace"
  ip netns exec "$space" ip link set lo up
done

cat > "$work/recipe.json" << 'EOF'
{"prune": {"warmup_epochs": 1, "schedule": "agp", "steps": 2, "criterion": "taylor",
           "config_list": [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}]}}
EOF
train=("$parsimony" train --model cnn --data "shapes:96,32" --batch 16 --config "$work/recipe.json"
  --seed 1 --memory-format contiguous --deterministic --threads 1 -o model.pt)

mkdir "$work/reference"
begin=$(date +%s.%N)
(cd "$work/reference" && "${train[@]}" --epochs 1 --processes 2 > log 2>&1) ||
  { cat "$work/reference/log"; fail 1 "--processes 2 failed"; }

since() { awk "BEGIN { printf \"%.1f\", $(date +%s.%N) - $1 }"; }
row() { printf '%9s %7s %10s  %-20s %8s %9s %8s\n' "$@"; }
row "delay, ms" loss "rate, Mb/s" result seconds packets lost
row 0 0 loopback reference "$(since "$begin")" "" ""

# DELAY LOSS RATE
start_link() {
  /usr/bin/python3 "$here/link.py" --between "${spaces[@]}" --delay "$1" --loss "$2" --rate "$3" \
    > "$work/link" 2>&1 &
  link=$!
  for _ in $(seq 100); do grep -q ready "$work/link" && return; sleep 0.1; done
  fail 4 "no link: $(tail -n 1 "$work/link")"
}

stop_link() { kill "$link"; wait "$link"; link=; }

# RANK OPTION...: one of the two, in the current folder, in the background
start_rank() {
  local rank=$1
  shift
  ip netns exec "${spaces[$rank]}" env RANK="$rank" WORLD_SIZE=2 GLOO_SOCKET_IFNAME=link0 \
    timeout 300 "${train[@]}" --store tcp:10.77.0.1:29500 "$@" > "log$rank" 2>&1 &
}

failed=0
number=0
for setting in $settings; do
  IFS=, read -r delay loss rate <<< "$setting"
  number=$((number + 1))
  mkdir "$work/$number"
  cd "$work/$number" || exit 1
  start_link "$delay" "$loss" "$rate"
  begin=$(date +%s.%N)
  start_rank 0 --epochs 1 --rank-timeout 120
  first=$!
  start_rank 1 --epochs 1 --rank-timeout 120
  wait $!
  codes=$?
  wait "$first"
  codes="$? $codes"
  seconds=$(since "$begin")
  stop_link
  result="same"
  if [ "$codes" != "0 0" ]; then result="exit codes $codes"
  elif ! cmp -s model.pt "$work/reference/model.pt"; then result="DIFFERS"
  fi
  # shellcheck disable=SC2046
  row "$delay" "$loss" "$rate" "$result" "$seconds" $(/usr/bin/python3 -c '
import json, sys
ways = json.loads(sys.stdin.readlines()[-1])
print(sum(way["packets"] for way in ways), sum(way["lost"] + way["dropped"] for way in ways))' < "$work/link")
  if [ "$result" != same ]; then
    failed=$((failed + 1))
    tail -n 2 log0 log1 | sed 's/^/    /'
  fi
done

# The link breaks: nothing closes the connections.
mkdir "$work/break"
cd "$work/break" || exit 1
start_link 0 0 0
start_rank 0 --epochs 1000 --rank-timeout 10
first=$!
start_rank 1 --epochs 1000 --rank-timeout 10
second=$!
for _ in $(seq 600); do grep -q "^epoch 2 of" log0 && break; sleep 0.1; done
kill -STOP "$link"
begin=$(date +%s.%N)
wait "$first"
codes=$?
wait "$second"
codes="$codes $?"
seconds=$(since "$begin")
kill -CONT "$link"
stop_link
result="both end, codes $codes"
if [ "$codes" != "4 4" ] || [ "${seconds%.*}" -ge 40 ]; then
  result="exit codes $codes"
  failed=$((failed + 1))
fi
row broken "" "" "$result" "$seconds" "" ""
sed -n 's/^parsimony: /    /p' log0 log1

[ "$failed" = 0 ] || { echo "$failed failed"; exit 1; }
echo "all the same"
