// A confusion matrix as a picture.
#pragma once

#include <string>

#include "metrics/confusion.h"

namespace lockstep {

// SVG: a row a class, a column for what it was taken for; the darker a cell the greater its share
// of the row, right answers blue, mistakes red. With few classes their names, the counts and each
// class's accuracy are written out, with many only the cells.
std::string confusion_svg(const Confusion& confusion, const std::string& title);

// The same cells without text as PNG, a cell at least one pixel.
std::string confusion_png(const Confusion& confusion);

// "true\ttaken for\titems" of every cell that is not 0, with a line of column names.
std::string confusion_table(const Confusion& confusion);

}  // namespace lockstep
