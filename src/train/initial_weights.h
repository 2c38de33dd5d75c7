// Beginning a run with the weights of another (run.load_model): the model only, not where it stood.
#pragma once

#include "base/file.h"
#include "nn/parameters.h"

namespace lockstep {

// `source`: a run folder (its best checkpoint), a checkpoint, or a tensor file. Copies every weight
// that is there by the same name and shape, the averaged one where there is one, and logs which
// others were left as they are, and why. Throws ConfigError when there is no such thing, DataError
// when no weight matches.
void load_initial_weights(const fs::path& source, Parameters& parameters);

}  // namespace lockstep
