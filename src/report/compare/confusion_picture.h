// Draws a confusion matrix.
#pragma once

#include <string>

#include "metrics/confusion.h"

namespace lockstep {

// Draws SVG with one row per class and one column per predicted class. A darker cell has a greater
// share of its row; right answers are blue, mistakes red. With few classes, their names, counts and
// accuracies are written out; with many, only the cells are drawn.
std::string confusion_svg(const Confusion& confusion, const std::string& title);

// Draws the same cells without text as PNG; a cell is at least one pixel.
std::string confusion_png(const Confusion& confusion);

// Returns "true\ttaken for\titems" for every nonzero cell, after a line of column names.
std::string confusion_table(const Confusion& confusion);

}  // namespace lockstep
