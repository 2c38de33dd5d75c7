// What a recipe is made from: the machine, what a person asked for, and the data of each kind.
// Plain figures: the rules (translation_rules.h, images_rules.h, texts_rules.h) are functions of
// them alone.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

struct MachineFacts {
  double cores = 1;  // usable ones: by the CPU mask and the control group, so 1.5 is possible
  int64_t memory_bytes = 0, available_bytes = 0;
  int gpus = 0;
  std::string instructions;    // of the kernels: "avx512_dot"; of a GPU "cuda"
  bool computes_bf16 = false;  // by the hardware, so that training in bf16 is faster
  // Floating-point operations a second of matrix products, by all cores or one GPU: in the numbers
  // that training computes with here, and in fp32.
  double product_flops = 0, fp32_flops = 0;
  // Programs that want a core while this is found out (the load of the last minute); where they
  // keep cores busy, the speed is that of one core, times the cores.
  double load = 0;
  bool busy() const { return gpus == 0 && load > 0.5 * cores; }
};

struct Budget {
  double minutes = 30;  // that the run may take, evaluations included
};

// Both sides of aligned text. Words stand between white space.
struct TranslationFacts {
  std::string source_language, target_language;
  int64_t pairs = 0;
  double source_words = 0, target_words = 0;            // mean of a line
  double source_characters = 0, target_characters = 0;  // likewise, code points
  int64_t long_words = 0;                               // 99 of 100 pairs have no longer side
  int64_t distinct_words = 0;             // of both sides, counted up to kMostDistinct
  int64_t alphabet = 0;                   // distinct characters of both sides
  int64_t dev_pairs = 0, test_pairs = 0;  // 0: not given
  // Of a prepared corpus; 0: not prepared yet.
  int64_t vocabulary = 0, target_pieces = 0;
};

struct ImagesFacts {
  bool prepared = false;  // shards that `lockstep prepare images` made
  std::vector<std::string> classes;
  int64_t train = 0, val = 0;                     // images; val 0: not given
  int64_t smallest_class = 0, largest_class = 0;  // images of train
  // Of the images that were looked at:
  int64_t sampled = 0, broken = 0;
  int64_t shorter_side = 0;   // the median, pixels
  int64_t smallest_side = 0;  // of the smallest
  bool one_size = false;      // all are squares of one size
  double grey_share = 0;
  std::array<double, 3> mean = {}, deviation = {};  // of red, green, blue, 0 to 1
};

struct TextsFacts {
  bool prepared = false;                                 // by `lockstep prepare labelled`
  int64_t vocabulary = 0;                                // pieces of prepared ones
  int64_t texts = 0;                                     // of train
  std::vector<std::pair<std::string, int64_t>> classes;  // name, texts; none: values
  double least_value = 0, largest_value = 0;             // of values
  bool pairs = false;
  bool counted_tokens = false;  // by the model's vocabulary; else estimated from words
  double mean_tokens = 0;       // of a text or pair with its special tokens, not cut
  int64_t long_tokens = 0;      // 99 of 100 have no more
  double other_letters = 0;     // share of the letters that are not of ASCII
  int64_t empty = 0;            // texts without a word
  int64_t validation = 0;       // texts; 0: not given
  bool labelled_test = false;

  bool values() const { return classes.empty(); }
};

}  // namespace lockstep
