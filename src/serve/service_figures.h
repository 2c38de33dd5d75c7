// What a server has done so far, in the text format that Prometheus reads
// (https://prometheus.io/docs/instrumenting/exposition_formats/).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "serve/decoding_queue.h"

namespace lockstep {

class ServiceFigures {
 public:
  void count_answer(int status) { ++answers_[status]; }
  void count_dropped() { ++dropped_; }  // a client left before its answer
  // A request for translation was answered with 200 so long after it was complete.
  void count_translated(double seconds);

  int64_t answers() const;
  std::string text(const DecodingQueue::Figures& queue, std::size_t connections) const;

 private:
  static constexpr std::array<double, 12> kBounds = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                                     0.5,   1,    2.5,   5,    10,  30};
  std::map<int, int64_t> answers_;  // by status
  std::array<int64_t, kBounds.size()> within_{};
  int64_t translated_ = 0, dropped_ = 0;
  double seconds_ = 0;
};

}  // namespace lockstep
