// The part of `lockstep classify` that handles texts.
#pragma once

#include <string>
#include <vector>

#include "tasks/uses.h"

namespace lockstep {

struct TextsToClassify {
  std::vector<std::string> texts;
  std::string file;    // more texts, one per line; "-": standard input
  bool pairs = false;  // a tab separates the two texts of a pair
  int64_t top = 5;
  bool json = false;
};

// Prints the most probable classes of each text, or the predicted value. Throws ConfigError without
// texts, DataError, with the line, for a line that is not UTF-8 or not a pair.
void classify_texts(const TextUse& model, const TextsToClassify& wanted);

}  // namespace lockstep
