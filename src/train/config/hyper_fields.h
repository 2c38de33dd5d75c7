// What of a configuration TensorBoard's page HPARAMS shows.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "formats/hyper_parameters.h"
#include "train/config/run_config.h"

namespace lockstep {

// Every key with its value, in the order of the saved configuration; lists as text, as in TOML.
std::vector<std::pair<std::string, HyperValue>> configuration_values(RunConfig& config);

// The keys that decide what is learned and how: of the task's sections and the optimizer all, of
// the schedule those that it reads, and what of the other sections differs from its default. Where
// files go, what the console shows and how ranks find each other is left out. Metrics:
// evaluation.metrics and the losses. Shown first: what differs from its default of batch, loss,
// model, optimizer and schedule, and the learning rate.
HyperParameters hyper_parameters(RunConfig& config);

}  // namespace lockstep
