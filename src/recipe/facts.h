// The inputs from which a configuration is made: the machine, the user's time budget, and the data
// of each kind. They are plain figures; the rules (translation_rules.h, images_rules.h,
// texts_rules.h) are functions of them alone.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

struct MachineFacts {
  double cores = 1;  // usable by CPU mask and control group, e.g. 1.5
  int64_t memory_bytes = 0, available_bytes = 0;
  int gpus = 0;
  std::string instructions;    // of the kernels: "avx512_dot"; for a GPU "cuda"
  bool computes_bf16 = false;  // in hardware, so that training in bf16 is faster
  // Floating-point operations per second of matrix products on all cores or one GPU: in the
  // precision that training would use here, and in fp32.
  double product_flops = 0, fp32_flops = 0;
  // The load average of the last minute while this was measured. If other programs keep the cores
  // busy, the speed is that of one core times the cores.
  double load = 0;
  bool busy() const { return gpus == 0 && load > 0.5 * cores; }
};

struct Budget {
  double minutes = 30;  // for the whole run, evaluations included
};

// The figures of aligned text. Words are separated by white space.
struct TranslationFacts {
  std::string source_language, target_language;
  int64_t pairs = 0;
  double source_words = 0, target_words = 0;            // mean per line
  double source_characters = 0, target_characters = 0;  // the same for code points
  int64_t long_words = 0;      // in 99 % of the pairs the longer side has at most so many
  int64_t distinct_words = 0;  // of both sides, counted up to kMostDistinct
  int64_t alphabet = 0;        // distinct characters of both sides
  int64_t dev_pairs = 0, test_pairs = 0;  // 0: not given
  // The figures of a prepared corpus; 0 if it is not prepared yet.
  int64_t vocabulary = 0, target_pieces = 0;
};

struct ImagesFacts {
  bool prepared = false;  // made by `lockstep prepare images`
  std::vector<std::string> classes;
  int64_t train = 0, val = 0;                     // numbers of images; val 0: not given
  int64_t smallest_class = 0, largest_class = 0;  // images of train
  std::string unread;  // says which pictures are of formats that are not read; empty: none
  // The figures of the sampled images:
  int64_t sampled = 0, broken = 0;
  int64_t shorter_side = 0;   // the median, in pixels
  int64_t smallest_side = 0;  // of all sampled images, in pixels
  bool one_size = false;      // all are squares of the same size
  double grey_share = 0;
  std::array<double, 3> mean = {}, deviation = {};  // of red, green, blue, 0 to 1
};

struct TextsFacts {
  bool prepared = false;                                 // by `lockstep prepare labelled`
  int64_t vocabulary = 0;                                // number of pieces, if prepared
  int64_t texts = 0;                                     // in train
  std::vector<std::pair<std::string, int64_t>> classes;  // name, number of texts; none for values
  double least_value = 0, largest_value = 0;             // if labels are values
  bool pairs = false;
  bool counted_tokens = false;  // with the model's vocabulary; else estimated from words
  double mean_tokens = 0;       // per text or pair with special tokens, before cutting
  int64_t long_tokens = 0;      // 99 % of the texts have at most so many
  double other_letters = 0;     // share of the letters that are not ASCII
  int64_t empty = 0;            // texts without a word
  int64_t validation = 0;       // number of texts; 0: not given
  bool labelled_test = false;

  bool values() const { return classes.empty(); }
};

}  // namespace lockstep
