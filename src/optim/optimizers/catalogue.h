// Holds the catalogue of optimizers by name; `lockstep list optimizers` prints it.
#pragma once

#include <memory>

#include "base/catalogue.h"
#include "optim/optimizers/optimizer.h"

namespace lockstep {

using OptimizerMaker = std::unique_ptr<OptimizerConfig> (*)();
const Catalogue<OptimizerMaker>& optimizers();

}  // namespace lockstep
