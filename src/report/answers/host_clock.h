// What of a run's times rests on the host's clock alone. With a GPU the rank's thread only hands
// the work of a phase over and goes on, until it needs a result. Runs tell the GPU's own times
// (dist/account/step_account.h), but for those of earlier versions, whose phases are those of the
// thread: there the backward pass ends when the loss is there, and has the GPU's time of both
// passes; what of an exchange is not hidden is in the optimizer, where the thread waits for the
// norm of the gradients. Whole steps are right.
#pragma once

#include "report/answers/answers.h"

namespace lockstep {

// Whether the run's ranks computed on GPUs, as its newest start says, else as run.device does, and
// its phases are by the clock of their hosts.
bool phases_by_host_clock(const Run& run);

// Returns the most that exposed communication and waiting for peers can be of a step on GPUs: all
// of the exchange and the optimizer, 0 to 1. REQUIRES times.
double most_waiting_share(const Run& run);

// Adds to an answer whose clock the phases of a run on GPUs are by, and how to measure what the
// host's does not tell.
void add_host_clock(const Run& run, Answer& out);

}  // namespace lockstep
