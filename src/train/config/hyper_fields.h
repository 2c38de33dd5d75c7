// Selects the configuration keys for TensorBoard's page HPARAMS.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "formats/hyper_parameters.h"
#include "train/config/run_config.h"

namespace lockstep {

// Returns every key with its value, in the order of the saved configuration; lists are text, as in
// TOML.
std::vector<std::pair<std::string, HyperValue>> configuration_values(RunConfig& config);

// Returns the keys that decide what is learned and how: all keys of the task's sections and the
// optimizer, those that the chosen schedule reads, and of the other sections those that differ from
// their defaults. Keys for output files, the console and how ranks find each other are left out.
// The metrics are evaluation.metrics and the losses. Shown first are the learning rate and what
// differs from its default in batch, loss, model, optimizer and schedule.
HyperParameters hyper_parameters(RunConfig& config);

}  // namespace lockstep
