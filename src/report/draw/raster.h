// Converts SVG to PNG with rsvg-convert, the program of librsvg (Debian's librsvg2-bin), since
// fonts and text layout are a field of their own. It is a program and not a library, so that
// training, and hosts of a run, need nothing of what drawing needs (Cairo, Pango, fonts).
#pragma once

#include "base/file.h"

namespace lockstep {

// Returns whether rsvg-convert is in PATH.
bool can_rasterise();

// Draws `svg` into `png`, with `scale` pixels for each unit of the drawing. REQUIRES
// can_rasterise(). Throws MachineError, with the program's output, when it fails.
void rasterise(const fs::path& svg, const fs::path& png, double scale);

}  // namespace lockstep
