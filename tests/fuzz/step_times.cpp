// times.bin: the times of every rank and step.
#include "formats/step_times.h"

#include "fuzz.h"

FUZZ(bytes) {
  const lockstep::fs::path file = lockstep::as_file(bytes);
  lockstep::use(lockstep::step_times_extent(file));
  lockstep::read_step_times(file, [](const lockstep::StepTimes& step) {
    for (const lockstep::RankTimes& rank : step.ranks) lockstep::use(rank);
  });
}
