// What of a run's times rests on the host's clock alone. A rank marks the phases of a step when its
// own thread enters them (dist/account/step_account.h). With a CPU that is when the work is done.
// With a GPU the thread only queues the work, and goes on while the GPU computes, until it needs a
// result: what of the forward and backward pass is still queued then counts for the phase in which
// the thread waits, the exchange or the optimizer. Whole steps are right all the same, for each
// ends with a result that the thread reads.
#pragma once

#include "report/answers/answers.h"

namespace lockstep {

// Whether the run's ranks computed on GPUs: as its newest start says, else as run.device does.
bool computed_on_gpus(const Run& run);

// For a run on GPUs, adds to an answer what its phases are and how to measure what they are not.
void add_host_clock(const Run& run, Answer& out);

}  // namespace lockstep
