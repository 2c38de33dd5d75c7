// Takes one optimizer step over all ranks: the page that says what training is.
#pragma once

#include "train/checkpoint/training_state.h"
#include "train/loop/step_books.h"

namespace lockstep {

// Advances state.position by one step. The gradient is the mean over the targets of all ranks (in a
// local step, of the group's ranks), however they are distributed; with training.gradient_mean =
// "ranks" the mean of the ranks' means. Where a rank runs out of memory,
// nothing changes on any rank (StepOutcome::out_of_memory); with hooks that keep errors, local
// steps and ranks that compute together, that rank throws instead. Throws DivergedError when the
// loss or the gradient is not finite in fp32 either, or the loss runs away (step_guard.h);
// MachineError when a peer is lost; and what `inputs` throw. Collective.
StepOutcome train_step(TrainingState& state, const StepInputs& inputs);

}  // namespace lockstep
