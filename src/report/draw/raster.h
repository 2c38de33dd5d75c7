// SVG to PNG by rsvg-convert, the program of librsvg (Debian's librsvg2-bin): fonts and text
// layout are a field of their own. A program and not a library, so that training needs none of what
// drawing needs (Cairo, Pango, fonts) and hosts of a run get none of it.
#pragma once

#include "base/file.h"

namespace lockstep {

// Whether there is one in PATH.
bool can_rasterise();

// Draws `svg` into `png`, `scale` pixels for each of the drawing's. REQUIRES: can_rasterise().
// Throws MachineError when the program fails, with what it says.
void rasterise(const fs::path& svg, const fs::path& png, double scale);

}  // namespace lockstep
