"""A cluster of one machine: just enough of Slurm's commands for submitit to send jobs to it."""

from __future__ import annotations

from pathlib import Path

_SBATCH = """\
#!/bin/bash
# Runs the tasks of the array one after the other, behind the caller's back.
file="${@: -1}"
id=$$
range=$(sed -n 's/^#SBATCH --array=\\([0-9]*\\)-\\([0-9]*\\).*/\\1 \\2/p' "$file")
cp "$file" "$(dirname "$0")/submitted.sh"
(
    for task in $(seq ${range:-0 0}); do
        export SLURM_JOB_ID=${id}_$task SLURM_ARRAY_JOB_ID=$id SLURM_ARRAY_TASK_ID=$task
        export SLURM_NTASKS=1 SLURM_JOB_NUM_NODES=1 SLURM_NODEID=0 SLURM_PROCID=0 SLURM_LOCALID=0
        export SLURM_JOB_NODELIST=here
        bash "$file"
    done
) >/dev/null 2>&1 </dev/null &
echo "Submitted batch job $id"
"""
_SRUN = """\
#!/bin/bash
# Leaves out srun's own options and runs the rest.
while [[ $1 == -* ]]; do
    [[ $1 == --output || $1 == --error ]] && shift
    shift
done
exec "$@"
"""
_SACCT = """\
#!/bin/bash
echo "JobID|State|NodeList"
"""


def install(folder: Path) -> str:
    """Write the commands into `folder`; returns it as an entry of PATH."""
    folder.mkdir()
    for name, text in {
        "sbatch": _SBATCH,
        "srun": _SRUN,
        "sacct": _SACCT,
        "scancel": _SACCT,
    }.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return str(folder)
