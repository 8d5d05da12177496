#!/bin/bash
# Prepares the scans of an approved study on a node of a Slurm cluster, into the site's cache:
#   sbatch deploy/slurm-prepare.sh STUDY ROSTER SITE_FOLDER
# The node must see the data set, the site's folder and its cache under the same paths as the agent.
# In site.yaml: task_runner: processes, task_runner_options: {max_workers: 8}.
#SBATCH --job-name=prepare-scans
#SBATCH --nodes=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=32G
#SBATCH --time=12:00:00
set -euo pipefail
# The job's own temporary Prefect records the number of participants, and nothing outside of it.
unset PREFECT_API_URL
export PREFECT_HOME="${TMPDIR:-/tmp}/prefect-${SLURM_JOB_ID:-0}" OMP_NUM_THREADS=1
trap 'rm -rf "$PREFECT_HOME"' EXIT
PROGRAM="${SITE_AGENT:-/opt/cape-consortium/bin/site-agent}"
"$PROGRAM" prepare "$1" --roster "$2" --folder "$3"
