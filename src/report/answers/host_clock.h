// What of a run's times rests on the host's clock alone. A rank marks the phases of a step when its
// own thread enters them (dist/account/step_account.h). With a CPU that is when the work is done.
// With a GPU the thread only hands the work over and goes on, until it needs a result: the backward
// pass ends when the loss is there, and has the GPU's time of both passes; what of an exchange is
// not hidden is in the optimizer, where the thread waits for the norm of the gradients
// (docs/run-folder.md#times-of-every-rank). Whole steps are right.
#pragma once

#include "report/answers/answers.h"

namespace lockstep {

// Whether the run's ranks computed on GPUs: as its newest start says, else as run.device does.
bool computed_on_gpus(const Run& run);

// Returns the most that exposed communication and waiting for peers can be of a step on GPUs: all
// of the exchange and the optimizer, 0 to 1. REQUIRES times.
double most_waiting_share(const Run& run);

// For a run on GPUs, adds to an answer what its phases are and how to measure what they are not.
void add_host_clock(const Run& run, Answer& out);

}  // namespace lockstep
