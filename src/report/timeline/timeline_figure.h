// A drawing of a few steps on all ranks, from spans (formats/span_file.h): what each did when, and
// when exchanges between them were under way. Where these lie beside the backward pass they are
// hidden; where the rank waits they are not.
#pragma once

#include <optional>

#include "base/file.h"
#include "formats/span_file.h"
#include "report/draw/plot.h"

namespace lockstep {

// From the newest spans of a run; nothing where it has none. DataError for a damaged file.
std::optional<Figure> timeline_figure(const fs::path& run);

// Of steps in the middle of what was recorded: four at most. Nothing without spans of a phase.
std::optional<Figure> timeline_figure(SpanFile spans);

}  // namespace lockstep
