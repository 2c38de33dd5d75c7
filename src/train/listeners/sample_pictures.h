// Samples of images as one picture for TensorBoard.
#pragma once

#include <optional>
#include <vector>

#include "formats/png_file.h"
#include "tasks/task.h"

namespace lockstep {

// The samples that have pictures, in rows as in a text, framed green where what came out is the
// reference, else red. Small pictures are enlarged by whole factors, large ones made smaller, to
// sides of at most 128 pixels. None without pictures.
std::optional<RgbImage> sample_grid(const std::vector<Sample>& samples);

}  // namespace lockstep
