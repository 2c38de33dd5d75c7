// Draws a few steps on all ranks from spans (formats/span_file.h): what each rank did when, and
// when exchanges between them were under way. Exchanges beside the backward pass are hidden; those
// during which the rank waits are not.
#pragma once

#include <optional>

#include "base/file.h"
#include "formats/span_file.h"
#include "report/draw/plot.h"

namespace lockstep {

// Draws the newest spans of a run; returns nothing where it has none. Throws DataError for a
// damaged file.
std::optional<Figure> timeline_figure(const fs::path& run);

// Draws steps in the middle of what was recorded, at most four. Returns nothing without spans of a
// phase.
std::optional<Figure> timeline_figure(SpanFile spans);

}  // namespace lockstep
