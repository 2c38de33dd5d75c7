// Makes histograms of weights and gradients for TensorBoard (logging.histograms_every).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/histogram.h"
#include "nn/parameters.h"

namespace lockstep {

struct NamedHistogram {
  std::string tag;  // "weights/encoder.0.self.query", "gradients/..."
  Histogram values;
};

// Parameters whose names agree up to the last dot (a layer's weight and bias) share a histogram.
// Counting takes about 7 ns per number and thread and uses all threads of the rank; arrays of a GPU
// are copied to the CPU first.
class WeightHistograms {
 public:
  // Steps `every`, 2 * `every`, ... are due; `every` >= 1. `parameters` must outlive this.
  WeightHistograms(const Parameters& parameters, int64_t every);

  bool is_due(int64_t step) const { return step % every_ == 0; }
  // Counts the gradients of a due step, each times `factor`, before the optimizer changes them.
  void take_gradients(double factor);
  // Returns the histograms of those gradients and of the present weights.
  std::vector<NamedHistogram> take();

 private:
  // A range of numbers that one thread counts.
  struct Piece {
    std::size_t group;
    int64_t begin, end;  // in the flat array
  };
  std::vector<Histogram> count(const torch::Tensor& flat, double factor) const;

  const Parameters& parameters_;
  int64_t every_;
  std::vector<std::string> groups_;
  std::vector<Piece> pieces_;
  std::vector<Histogram> gradients_;  // by group; empty: not counted
};

}  // namespace lockstep
