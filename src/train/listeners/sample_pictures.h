// Combines samples of images into one picture for TensorBoard.
#pragma once

#include <optional>
#include <vector>

#include "formats/png_file.h"
#include "tasks/task.h"

namespace lockstep {

// Lays out the samples that have pictures row by row, framed green where the output is the
// reference, else red. Small pictures are enlarged by whole factors, large ones reduced, to sides
// of at most 128 pixels. Returns nothing without pictures.
std::optional<RgbImage> sample_grid(const std::vector<Sample>& samples);

}  // namespace lockstep
