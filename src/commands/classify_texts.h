// The part of `lockstep classify` that is for texts.
#pragma once

#include <string>
#include <vector>

#include "tasks/uses.h"

namespace lockstep {

struct TextsToClassify {
  std::vector<std::string> texts;
  std::string file;    // one a line besides; "-": standard input
  bool pairs = false;  // a tabulator parts the two of a pair
  int64_t top = 5;
  bool json = false;
};

// Prints the most probable classes of each text, or the value that is predicted. ConfigError: no
// texts. DataError, with the line: not UTF-8, or not a pair.
void classify_texts(const TextUse& model, const TextsToClassify& wanted);

}  // namespace lockstep
