#include "data/parallel/parallel_text.h"

#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "data/lines/line_stream.h"
#include "data/lines/progress.h"

namespace lockstep {

namespace {

int64_t count_to_end(LineStream& stream) {
  std::string_view line;
  while (stream.next(line)) {
  }
  return stream.number();
}

[[noreturn]] void fail_for_counts(const ParallelFiles& files, int64_t source, int64_t target) {
  DataError error("{} has {} lines, {} has {}; expected as many in both", files.source.string(),
                  with_commas(source), files.target.string(), with_commas(target));
  error.set_cause("line n of one file must translate line n of the other");
  error.set_advice("check that both come from the same corpus and none was cut or sorted");
  throw error;
}

}  // namespace

ParallelText read_parallel_text(const ParallelFiles& files, const CleaningRules& rules) {
  LineStream sources(files.source);
  LineStream targets(files.target);
  ParallelText out;
  Progress progress("reading " + files.source.filename().string(), "pairs");
  while (true) {
    std::string_view source;
    std::string_view target;
    bool has_source = sources.next(source);
    bool has_target = targets.next(target);
    if (has_source != has_target) {
      fail_for_counts(files, count_to_end(sources), count_to_end(targets));
    }
    if (!has_source) break;
    ++out.lines;
    progress.show(out.lines);
    PairView pair{trim(source), trim(target)};
    if (std::optional<std::string> reason = reason_to_drop(pair, rules)) {
      ++out.dropped[*reason];
    } else {
      out.pairs.add(pair.source, pair.target);
    }
  }
  return out;
}

ParallelText read_held_out_text(const ParallelFiles& files) {
  return read_parallel_text(files, {.min_words = 0,
                                    .max_words = std::numeric_limits<int64_t>::max(),
                                    .max_ratio = std::numeric_limits<double>::infinity()});
}

}  // namespace lockstep
