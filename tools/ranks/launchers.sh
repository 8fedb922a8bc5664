#!/bin/bash
# Trains one small network, cut twice on the way, in two ranks that real launchers start, and compares
# the weights byte by byte with those of `train --processes 2`.
#
#   tools/ranks/launchers.sh [--no-install] PARSIMONY
#
# Launchers: torchrun, Slurm's srun and sbatch, Open MPI's mpirun, MPICH's mpirun; each with the
# stores that make sense for it. Slurm runs on this machine alone, with a configuration, a key and
# ports of its own; its daemons end with the script. Missing Debian packages are installed, unless
# --no-install is given; those need root, and so does slurmd.
# Prints a table. Exit codes: 0 all the same, 1 one differs or failed, 2 usage, 4 a launcher is missing.
set -u
self=$0
here=$(cd "$(dirname "$0")" && pwd)

fail() { local code=$1; shift; echo "launchers.sh: $*" >&2; exit "$code"; }

install=yes
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$self"; exit 0 ;;
    --no-install) install= ;;
    -*) fail 2 "unknown option $1; see --help" ;;
    *) break ;;
  esac
  shift
done
[ $# -eq 1 ] || fail 2 "usage: launchers.sh [--no-install] PARSIMONY"
parsimony=$(command -v "$1") || fail 2 "no command $1"
parsimony=$(realpath "$parsimony")
[ "$(id -u)" = 0 ] || fail 4 "needs root"

torchrun=${PARSIMONY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/parsimony}/torch/bin/torchrun  # tools/setup.sh
packages="munge slurmctld slurmd slurm-client openmpi-bin mpich"
programs="munged slurmctld slurmd srun mpirun.openmpi mpirun.mpich $torchrun"
missing() { local name; for name in $programs; do command -v "$name" > /dev/null || echo "$name"; done; }
if [ -n "$(missing)" ] && [ -n "$install" ]; then
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages > /dev/null
fi
[ -z "$(missing)" ] || fail 4 "missing: $(missing | tr '\n' ' ')"

work=$(mktemp -d "${TMPDIR:-/tmp}/launchers-XXXXXX")
export TMPDIR=$work OMP_NUM_THREADS=1
# Slurm's daemons also drop privileges.
chmod 755 "$work"

stop() {  # PIDFILE
  local pid
  [ -s "$1" ] || return 0
  pid=$(cat "$1")
  kill "$pid" 2> /dev/null || return 0
  for _ in $(seq 50); do kill -0 "$pid" 2> /dev/null || return 0; sleep 0.2; done
  kill -9 "$pid" 2> /dev/null
}

clean() {
  trap - EXIT
  if [ -s "$work/slurm/slurmctld.pid" ]; then
    timeout 20 scancel --quiet --user root 2> /dev/null
    for _ in $(seq 50); do [ -n "$(timeout 5 squeue -h 2> /dev/null)" ] || break; sleep 0.2; done
  fi
  stop "$work/slurm/slurmd.pid"
  stop "$work/slurm/slurmctld.pid"
  stop "$work/slurm/munged.pid"
  rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM

free_port() {
  /usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])'
}

# --- what is trained

cat > "$work/recipe.json" << 'EOF'
{"prune": {"warmup_epochs": 1, "schedule": "agp", "steps": 2, "criterion": "taylor",
           "config_list": [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}]}}
EOF
options=(--model cnn --data "shapes:96,32" --batch 16 --config "$work/recipe.json" --epochs 1 --seed 1
  --memory-format contiguous --deterministic --rank-timeout 60)
train=("$parsimony" train "${options[@]}" --threads 1 -o model.pt)

reference=$work/reference
mkdir "$reference"
(cd "$reference" && "${train[@]}" --processes 2 > log 2>&1) || { cat "$reference/log"; fail 1 "--processes 2 failed"; }

failed=0
rows=0
folder=
row() { printf '%-34s %-24s %-10s %6s\n' "$@"; }

# Where the next run takes place.
begin() { rows=$((rows + 1)); folder=$work/run$rows; mkdir "$folder"; started=$(date +%s.%N); }

# LAUNCHER STORE CODE RESULT: what became of a run; RESULT says it where the launcher ended well.
tell() {
  local result=$4
  [ "$3" = 0 ] || result="exit $3"
  row "$1" "$2" "$result" "$(awk "BEGIN { printf \"%.1f\", $(date +%s.%N) - $started }")"
  [ "$result" = same ] && return
  failed=$((failed + 1))
  tail -n 4 "$folder/log" | cut -c -160 | sed 's/^/    /'
}

# LAUNCHER STORE CODE: compares what the run has left.
judge() { tell "$@" "$(cmp -s "$folder/model.pt" "$reference/model.pt" && echo same || echo DIFFERS)"; }

# LAUNCHER STORE COMMAND...
run() {
  local launcher=$1 store=$2
  shift 2
  begin
  (cd "$folder" && timeout 180 "$@") > "$folder/log" 2>&1
  judge "$launcher" "$store" $?
}

# Runs with each of the three ways to meet. LAUNCHER COMMAND..., which hands its environment on.
three_stores() {
  local launcher=$1
  shift
  run "$launcher" "variables" env MASTER_ADDR=127.0.0.1 MASTER_PORT="$(free_port)" "$@" "${train[@]}"
  run "$launcher" "--store file:" "$@" "${train[@]}" --store "file:$work/store$rows"
  run "$launcher" "--store tcp:" "$@" "${train[@]}" --store "tcp:localhost:$(free_port)"
}

row launcher store result seconds
row "--processes 2" "its own" reference ""
run "--processes 2, again" "its own" "${train[@]}" --processes 2

# --- torchrun

torchrun=("$torchrun" --no_python)

# Ends rank 1 of the first attempt and rank 0 of the second by force, as soon as there is a checkpoint.
cat > "$work/twice.sh" << 'EOF'
#!/bin/bash
if [ "$((RANK + TORCHELASTIC_RESTART_COUNT))" = 1 ]; then
  (for _ in $(seq 600); do [ -e checkpoint ] && break; sleep 0.05; done; kill -9 $$) &
fi
exec "$@"
EOF
chmod +x "$work/twice.sh"

two=(--nproc_per_node 2)
static() { echo --master_addr 127.0.0.1 --master_port "$(free_port)"; }
# shellcheck disable=SC2046
{
  run "torchrun" "its agent's" "${torchrun[@]}" "${two[@]}" $(static) "${train[@]}"
  run "torchrun" "--store file:" "${torchrun[@]}" "${two[@]}" $(static) "${train[@]}" \
    --store "file:$work/store$rows"
  run "torchrun" "--store tcp:" "${torchrun[@]}" "${two[@]}" $(static) "${train[@]}" \
    --store "tcp:localhost:$(free_port)"
  run "torchrun, rendezvous c10d" "MASTER_ADDR, MASTER_PORT" "${torchrun[@]}" "${two[@]}" \
    --rdzv_backend c10d --rdzv_id "$$" --rdzv_endpoint "localhost:$(free_port)" "${train[@]}"

  begin
  meet=$(static)
  (
    cd "$folder" || exit
    other=("${torchrun[@]}" --nnodes 2 --nproc_per_node 1)
    # shellcheck disable=SC2086
    timeout 180 "${other[@]}" --node_rank 1 $meet "${train[@]}" > log1 2>&1 &
    # shellcheck disable=SC2086
    timeout 180 "${other[@]}" --node_rank 0 $meet "${train[@]}" > log 2>&1
    code=$?
    wait $! && exit $code
  )
  judge "torchrun, two agents" "their agent's" $?

  run "torchrun, two kills and restarts" "its agent's" "${torchrun[@]}" "${two[@]}" $(static) \
    --max_restarts 2 "$work/twice.sh" "${train[@]}" --checkpoint checkpoint
}

# --- mpirun

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
three_stores "mpirun (Open MPI)" mpirun.openmpi --oversubscribe --bind-to none -n 2
three_stores "mpirun (MPICH)" mpirun.mpich -n 2

# --- Slurm

start_slurm() {
  local slurm=$work/slurm name tries
  name=$(hostname -s)
  mkdir -p "$slurm/state" "$slurm/spool"
  head -c 128 /dev/urandom > "$slurm/key"
  chmod 600 "$slurm/key"
  cat > "$slurm/slurm.conf" << EOF
ClusterName=launchers
SlurmctldHost=$name(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$slurm/munged.socket,cred_expire=5
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd.pid
SlurmctldLogFile=$slurm/slurmctld.log
SlurmdLogFile=$slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=$name NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
EOF
  export SLURM_CONF=$slurm/slurm.conf
  munged --force --key-file="$slurm/key" --socket="$slurm/munged.socket" \
    --pid-file="$slurm/munged.pid" --log-file="$slurm/munged.log" --seed-file="$slurm/munged.seed" \
    2> "$slurm/said" &&
    slurmctld -i -f "$SLURM_CONF" && slurmd -f "$SLURM_CONF" || return
  for tries in $(seq 60); do
    [ "$(sinfo -h -o %T 2> /dev/null)" = idle ] && return
    sleep 0.5
  done
  echo "no idle node after $tries looks"
  return 1
}
start_slurm || fail 1 "Slurm does not start: $(cat "$work"/slurm/*.log | tail -n 5)"

srun=(srun --quiet -n 2)
three_stores "srun" "${srun[@]}"
run "srun --ntasks-per-node" "--store file:" "${srun[@]}" --ntasks-per-node 2 "${train[@]}" \
  --store "file:$work/store$rows"
run "srun --mpi=pmi2" "--store file:" "${srun[@]}" --mpi=pmi2 "${train[@]}" \
  --store "file:$work/store$rows"

begin
sbatch --quiet --wait -n 2 -o "$folder/log" "$here/slurm_train.sbatch" "$parsimony" "$folder" "${options[@]}"
judge "slurm_train.sbatch" "--store file:" $?

begin
job=$(sbatch --parsable -n 2 -o "$folder/log" "$here/slurm_train.sbatch" "$parsimony" "$folder" "${options[@]}")
for _ in $(seq 600); do [ -e "$folder/checkpoint" ] && break; sleep 0.05; done
scontrol requeue "$job"
for _ in $(seq 600); do [ -n "$(squeue -h -j "$job")" ] || break; sleep 0.2; done
grep -q "resumes from" "$folder/log"
judge "slurm_train.sbatch, requeued" "--store file:" $?

# A sweep: the networks of two tasks that share a folder, and those of one process.
cat > "$work/sweep.json" << 'EOF'
{"model": "cnn", "data": "shapes:64,32", "train": {"epochs": 1, "batch": 32},
 "prune": {"config_list": [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}]},
 "sweep": {"sparsity": [0.25, 0.5, 0.75], "criterion": ["l1"], "seed": [1]}}
EOF
sweep=(--config "$work/sweep.json" --memory-format contiguous --deterministic)
"$parsimony" sweep "${sweep[@]}" --threads 1 --out "$work/sweep" > "$work/log" 2>&1 ||
  fail 1 "sweep: $(tail -n 2 "$work/log")"

# LAUNCHER HOW CODE
judge_sweep() {
  local result="same" points networks
  points=$(wc -l < "$folder/out/ledger.jsonl")
  networks=$(find "$folder/out/models" -name '*.pt' | wc -l)
  if [ "$points" != 4 ] || [ "$networks" != 4 ]; then result="$points points"
  elif ! diff -r "$folder/out/models" "$work/sweep/models" > /dev/null; then result="DIFFERS"
  fi
  tell "$@" "$result"
}

begin
sbatch --quiet --wait -n 2 -o "$folder/log" "$here/slurm_sweep.sbatch" "$parsimony" "$folder/out" "${sweep[@]}"
judge_sweep "slurm_sweep.sbatch, 4 points" "whoever is free" $?
begin
"${srun[@]}" "$parsimony" sweep "${sweep[@]}" --threads 1 --out "$folder/out" > "$folder/log" 2>&1
judge_sweep "srun sweep, 4 points" "every second" $?
begin
sbatch --quiet --wait --array 0-1 -o "$folder/log%a" --wrap \
  "$(printf '%q ' "$parsimony" sweep "${sweep[@]}" --threads 1 --out "$folder/out")"
code=$?
cat "$folder"/log[01] > "$folder/log"
judge_sweep "sbatch --array sweep, 4 points" "every second" $code

# --- what is to be said

if [ -n "$why" ]; then
  echo "torchrun: fails in itself without --redirects 1 --tee 1: $why"
fi
if [ "$failed" -gt 0 ]; then echo "$failed of $rows failed"; exit 1; fi
echo "$rows of $rows the same"
