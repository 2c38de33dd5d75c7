// A comparison as text: for a terminal, as CSV, as JSON, and every epoch of every run as CSV.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/compare/comparison.h"
#include "report/draw/text_table.h"

namespace lockstep {

// Rows of cells, a header first: what differs, then figures as "mean ± deviation"; columns without
// any figure are left out. A line a group, groups with runs that are not done marked.
TextTable comparison_table(const Comparison& comparison);

// The table and the notes below it.
std::string comparison_text(const Comparison& comparison);
// A line a group: values, set-up, network, how many runs are done, and of each figure
// NAME (mean), NAME_sd and of scaling speedup, efficiency. What is not known is empty.
std::string comparison_csv(const Comparison& comparison);
// {"version", "keys", "metric", "notes", "groups": [...], "runs": [...]}; unknown figures are null.
nlohmann::ordered_json comparison_json(const Comparison& comparison);
// A line an epoch of each run: run, set-up, values, seed, epoch, steps, complete, seconds,
// wait_seconds, items_per_second, train_loss, and of its newest evaluation every metric.
std::string epochs_csv(const Comparison& comparison);

}  // namespace lockstep
