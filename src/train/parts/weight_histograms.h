// Histograms of weights and gradients for TensorBoard (logging.histograms_every).
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

// Parameters whose names are alike up to the last dot (a layer's weight and bias) make one group.
// About 7 ns a number and array on a thread, with all threads of the rank; arrays of a GPU are
// copied to the CPU first.
class WeightHistograms {
 public:
  // `parameters` must outlive it. every >= 1: of steps `every`, 2 * every, ...
  WeightHistograms(const Parameters& parameters, int64_t every);

  bool is_due(int64_t step) const { return step % every_ == 0; }
  // The gradients of a step that is due, each times `factor`, before the optimizer takes them.
  void take_gradients(double factor);
  // Those gradients and the weights as they are now.
  std::vector<NamedHistogram> take();

 private:
  // Numbers that are counted together by one thread.
  struct Piece {
    std::size_t group;
    int64_t begin, end;  // in the flat array
  };
  std::vector<Histogram> count(const torch::Tensor& flat, double factor) const;

  const Parameters& parameters_;
  int64_t every_;
  std::vector<std::string> groups_;
  std::vector<Piece> pieces_;
  std::vector<Histogram> gradients_;  // by group; empty: none were taken
};

}  // namespace lockstep
