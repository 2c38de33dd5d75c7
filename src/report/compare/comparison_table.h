// Writes a comparison as text for a terminal, as CSV and as JSON, and every epoch of every run as
// CSV.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/compare/comparison.h"
#include "report/draw/text_table.h"

namespace lockstep {

// Returns rows of cells, a header first: what differs, then figures as "mean ± deviation". Columns
// without any figure are left out. There is one row per group; groups with unfinished runs are
// marked.
TextTable comparison_table(const Comparison& comparison);

// Returns the table with the notes below it.
std::string comparison_text(const Comparison& comparison);
// Returns one line per group: values, set-up, network, number of finished runs, and for each figure
// NAME (mean) and NAME_sd, and speedup and efficiency. What is unknown is empty.
std::string comparison_csv(const Comparison& comparison);
// Returns {"version", "keys", "metric", "notes", "groups": [...], "runs": [...]}; unknown figures
// are null.
nlohmann::ordered_json comparison_json(const Comparison& comparison);
// Returns one line per epoch of each run: run, set-up, values, seed, epoch, steps, complete,
// seconds, wait_seconds, items_per_second, train_loss, and every metric of its newest evaluation.
std::string epochs_csv(const Comparison& comparison);

}  // namespace lockstep
