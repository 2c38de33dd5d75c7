#include "serve/service_figures.h"

#include <fmt/format.h>

namespace lockstep {

namespace {

void add(std::string& out, const char* name, const char* type, const char* help, double value) {
  out += fmt::format("# HELP lockstep_{0} {1}\n# TYPE lockstep_{0} {2}\nlockstep_{0} {3}\n", name,
                     help, type, value);
}

void add(std::string& out, const char* name, const char* type, const char* help, int64_t value) {
  out += fmt::format("# HELP lockstep_{0} {1}\n# TYPE lockstep_{0} {2}\nlockstep_{0} {3}\n", name,
                     help, type, value);
}

}  // namespace

void ServiceFigures::count_translated(double seconds) {
  ++translated_;
  seconds_ += seconds;
  for (std::size_t i = 0; i < kBounds.size(); ++i) {
    if (seconds <= kBounds[i]) ++within_[i];
  }
}

int64_t ServiceFigures::answers() const {
  int64_t sum = 0;
  for (const auto& [status, count] : answers_) sum += count;
  return sum;
}

std::string ServiceFigures::text(const DecodingQueue::Figures& queue,
                                 std::size_t connections) const {
  std::string out =
      "# HELP lockstep_answers_total Answers by status.\n# TYPE lockstep_answers_total counter\n";
  for (const auto& [status, count] : answers_) {
    out += fmt::format("lockstep_answers_total{{status=\"{}\"}} {}\n", status, count);
  }
  add(out, "dropped_total", "counter", "Requests whose client left before the answer.", dropped_);
  add(out, "lines_total", "counter", "Lines translated.", queue.lines);
  add(out, "pieces_total", "counter", "Pieces of the translations.", queue.pieces);
  add(out, "batches_total", "counter", "Batches decoded.", queue.batches);
  add(out, "shared_batches_total", "counter", "Batches with lines of several requests.",
      queue.shared_batches);
  add(out, "lines_waiting", "gauge", "Lines that wait for a batch.", queue.waiting);
  add(out, "lines_decoding", "gauge", "Lines that are being decoded.", queue.decoding);
  add(out, "lines_per_second", "gauge", "Lines decoded a second, of late.", queue.lines_per_second);
  add(out, "connections", "gauge", "Open connections.", static_cast<int64_t>(connections));
  out +=
      "# HELP lockstep_translate_seconds From a complete request to its answer.\n"
      "# TYPE lockstep_translate_seconds histogram\n";
  for (std::size_t i = 0; i < kBounds.size(); ++i) {
    out +=
        fmt::format("lockstep_translate_seconds_bucket{{le=\"{}\"}} {}\n", kBounds[i], within_[i]);
  }
  out += fmt::format(
      "lockstep_translate_seconds_bucket{{le=\"+Inf\"}} {0}\n"
      "lockstep_translate_seconds_sum {1}\nlockstep_translate_seconds_count {0}\n",
      translated_, seconds_);
  return out;
}

}  // namespace lockstep
