#!/bin/bash
#SBATCH --job-name=spdebench
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32
#SBATCH --gpus-per-node=8
#SBATCH --time=04:00:00
# Start a Ray cluster within a SLURM job and run one spdebench command on it:
#   sbatch examples/slurm.sh table all --run --device cuda --budget 3h45m
# data/, runs/ and results/ must be on a file system that all nodes share. If the job is stopped, submit it again to continue.
set -euo pipefail

export OMP_NUM_THREADS=1 RAY_USAGE_STATS_ENABLED=0
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN=${RAY_AUTH_TOKEN:-$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')}
trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT

mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head=${nodes[0]}
others=$((${#nodes[@]} - 1))
ip=$(srun --nodes=1 --ntasks=1 --nodelist="$head" hostname --ip-address | awk '{print $1}')
export RAY_ADDRESS=$ip:$((20000 + SLURM_JOB_ID % 20000))
node=(--block --num-cpus="$SLURM_CPUS_PER_TASK" --object-store-memory=200000000)

srun --nodes=1 --ntasks=1 --overlap --nodelist="$head" \
    ray start --head --node-ip-address="$ip" --port="${RAY_ADDRESS##*:}" --include-dashboard=false "${node[@]}" &
until (exec 3<>"/dev/tcp/${RAY_ADDRESS%:*}/${RAY_ADDRESS##*:}") 2>/dev/null; do sleep 1; done
if ((others > 0)); then
    srun --nodes="$others" --ntasks="$others" --overlap --exclude="$head" \
        ray start --address="$RAY_ADDRESS" "${node[@]}" &
fi

spdebench "$@" --engine ray
