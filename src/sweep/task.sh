#!/bin/sh
# One task of a Slurm array: LIST PROGRAM RUNS THREADS. Carries out the run in its line of the list. Slurm sends USR1 to
# this shell before the time limit: the run then ends after its step with a checkpoint, and the task goes back to the
# queue. A TERM is the sweep's own wish to stop, so that nothing is queued again.
run=$(sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" "$1")
again=
trap 'again=yes; kill -USR1 "$child"' USR1
trap 'kill -TERM "$child"' TERM
"$2" exec "$3/$run" --runs-dir "$3" --threads "$4" &
child=$!
while kill -0 "$child" 2>/dev/null; do
    wait "$child"
    code=$?
done
if [ -n "$again" ] && [ "$code" -ne 0 ]; then
    scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
fi
exit "$code"
