// metrics.jsonl of a run, as report, watch and compare read it.
#include "fuzz.h"
#include "report/run/run_history.h"

FUZZ(bytes) { lockstep::use(lockstep::read_history(lockstep::as_file(bytes))); }
