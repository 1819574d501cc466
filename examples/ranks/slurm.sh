#!/bin/bash
# One model on four nodes: sbatch examples/ranks/slurm.sh /models/model.fovea "The capital of France is"
# Slurm must start MPI's processes by PMIx (srun --mpi=list).
#SBATCH --job-name=fovea
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --time=00:30:00
set -eu
export FOVEA_THREADS=$SLURM_CPUS_PER_TASK
srun --mpi=pmix --cpus-per-task="$SLURM_CPUS_PER_TASK" fovea run "${1:?a Fovea file}" -p "${2:?a prompt}"
