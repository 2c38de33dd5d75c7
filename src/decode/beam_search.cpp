#include "decode/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "decode/decoding_batches.h"

namespace lockstep {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// One token of a hypothesis; `parent` leads to the tokens before it. It is an index into the links
// of the batch.
struct Link {
  int32_t token = 0;
  int32_t parent = -1;
};

struct Live {
  double log_probability = 0;
  int32_t link = -1;  // its newest token; -1 before the first
};

struct Finished {
  double score = 0, log_probability = 0;
  int32_t link = -1;
};

// A continuation of live hypothesis `beam` by `token`.
struct Continuation {
  double log_probability = 0;
  int32_t beam = 0, token = 0;
};

// The search for one sentence.
struct Search {
  std::size_t source = 0;  // index in the caller's list
  int64_t max_length = 0;
  std::vector<Live> live;
  std::vector<Finished> finished;  // the beam_size best ones, best first
};

// Searches for the translations of one batch of sentences together.
class BatchSearch {
 public:
  BatchSearch(const DecodingModel& model, const SpecialIds& special, const BeamOptions& options,
              int64_t n_best)
      : model_(model),
        special_(special),
        options_(options),
        n_best_(static_cast<std::size_t>(n_best)),
        looks_at_all_(options.stop == "t2t") {}

  // Decodes sources[i], each not empty, for i in `batch`, and writes out[i].
  void run(const std::vector<std::vector<int32_t>>& sources, const std::vector<std::size_t>& batch,
           std::vector<std::vector<Hypothesis>>& out);

 private:
  Candidates candidates(Decoder& decoder) const;
  std::vector<Continuation> continuations(const Search& search, const Candidates& candidates,
                                          int64_t first_row) const;
  void advance(Search& search, const std::vector<Continuation>& best, std::vector<int32_t>& beams);
  bool done(const Search& search) const;
  std::vector<int32_t> ids_up_to(int32_t link) const;
  std::vector<Hypothesis> results(const Search& search) const;

  const DecodingModel& model_;
  SpecialIds special_;
  BeamOptions options_;
  std::size_t n_best_;
  bool looks_at_all_;   // whether all 2k continuations may end
  int64_t length_ = 0;  // tokens of every live hypothesis
  std::vector<Link> links_;
  std::vector<int64_t> tokens_;  // the newest token of every row
};

void BatchSearch::run(const std::vector<std::vector<int32_t>>& sources,
                      const std::vector<std::size_t>& batch,
                      std::vector<std::vector<Hypothesis>>& out) {
  std::vector<Search> searches;
  std::vector<std::vector<int32_t>> inputs;
  for (std::size_t i : batch) {
    const int64_t limit = max_output_length(options_, std::ssize(sources[i]));
    searches.push_back({i, limit, {Live{}}, {}});
    inputs.push_back(sources[i]);
    inputs.back().push_back(special_.eos);
  }
  const std::unique_ptr<Decoder> decoder = model_.start(inputs);
  tokens_.assign(batch.size(), special_.bos);
  while (!searches.empty()) {
    const Candidates step = candidates(*decoder);
    ++length_;
    std::vector<Search> going_on;
    std::vector<int32_t> rows;
    int64_t row = 0;
    for (Search& search : searches) {
      const int64_t first_row = row;
      row += static_cast<int64_t>(search.live.size());
      std::vector<int32_t> beams;
      advance(search, continuations(search, step, first_row), beams);
      if (done(search)) {
        out[search.source] = results(search);
        continue;
      }
      for (int32_t beam : beams) rows.push_back(static_cast<int32_t>(first_row) + beam);
      going_on.push_back(std::move(search));
    }
    searches = std::move(going_on);
    if (searches.empty()) break;
    tokens_.clear();
    for (const Search& search : searches) {
      for (const Live& live : search.live) {
        tokens_.push_back(links_[static_cast<std::size_t>(live.link)].token);
      }
    }
    decoder->select(rows);
  }
}

Candidates BatchSearch::candidates(Decoder& decoder) const {
  // One more than stay live: at most one continuation of a row is </s>. Where all ends among the 2k
  // best count, their ranks must be right too.
  const int64_t per_row = looks_at_all_ ? 2 * options_.beam_size : options_.beam_size + 1;
  const std::vector<int32_t> excluded = excluded_ids(special_, length_ < options_.min_length);
  decoder.step(tokens_);
  return decoder.best(per_row, excluded);
}

// Returns the 2 * beam_size best continuations, best first; of equal ones, that of the better
// hypothesis comes first.
std::vector<Continuation> BatchSearch::continuations(const Search& search,
                                                     const Candidates& candidates,
                                                     int64_t first_row) const {
  std::vector<Continuation> all;
  const bool must_end = special_.ends_at_limit && length_ >= search.max_length;
  for (std::size_t beam = 0; beam < search.live.size(); ++beam) {
    if (must_end) {
      const double so_far = search.live[beam].log_probability;
      if (so_far != kNever) all.push_back({so_far, static_cast<int32_t>(beam), special_.eos});
      continue;
    }
    const std::size_t row = static_cast<std::size_t>(first_row) + beam;
    const std::size_t per_row = static_cast<std::size_t>(candidates.per_row);
    for (std::size_t i = row * per_row; i < (row + 1) * per_row; ++i) {
      const double log_probability =
          search.live[beam].log_probability + candidates.log_probability[i];
      if (log_probability == kNever) break;
      all.push_back({log_probability, static_cast<int32_t>(beam), candidates.id[i]});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Continuation& a, const Continuation& b) {
    return a.log_probability > b.log_probability;
  });
  if (all.size() > 2 * static_cast<std::size_t>(options_.beam_size)) {
    all.resize(2 * static_cast<std::size_t>(options_.beam_size));
  }
  return all;
}

// Moves `best` into the finished and live hypotheses of the sentence; beams[i] becomes the former
// index of live hypothesis i.
void BatchSearch::advance(Search& search, const std::vector<Continuation>& best,
                          std::vector<int32_t>& beams) {
  const std::size_t k = static_cast<std::size_t>(options_.beam_size);
  std::vector<Live> next;
  for (std::size_t rank = 0; rank < best.size(); ++rank) {
    const Continuation& c = best[rank];
    const int32_t parent = search.live[static_cast<std::size_t>(c.beam)].link;
    if (c.token == special_.eos) {
      if (rank < k || looks_at_all_) {
        search.finished.push_back(
            {c.log_probability / length_norm(options_, length_), c.log_probability, parent});
      }
      continue;
    }
    if (next.size() == k) continue;
    links_.push_back({c.token, parent});
    next.push_back({c.log_probability, static_cast<int32_t>(links_.size()) - 1});
    beams.push_back(c.beam);
  }
  // A vocabulary of few tokens may not fill the beam: then the last one is
  // repeated and never continued.
  while (!next.empty() && next.size() < k) {
    next.push_back({kNever, next.back().link});
    beams.push_back(beams.back());
  }
  std::stable_sort(search.finished.begin(), search.finished.end(),
                   [](const Finished& a, const Finished& b) { return a.score > b.score; });
  if (search.finished.size() > k) search.finished.resize(k);
  search.live = std::move(next);
}

bool BatchSearch::done(const Search& search) const {
  if (search.live.empty() || length_ >= search.max_length) return true;
  if (search.finished.size() < n_best_) return false;
  const double best = search.live[0].log_probability;
  const double now = best / length_norm(options_, length_),
               bound = best / length_norm(options_, search.max_length);
  const double nth = search.finished[n_best_ - 1].score, worst = search.finished.back().score;
  if (options_.stop == "t2t") return worst >= bound;
  const bool full = search.finished.size() == static_cast<std::size_t>(options_.beam_size);
  if (options_.stop == "full") return full;
  if (nth >= bound) return true;
  if (options_.stop == "bound") return false;
  if (options_.stop == "first") return nth >= now;
  return full && worst >= now;
}

std::vector<int32_t> BatchSearch::ids_up_to(int32_t link) const {
  std::vector<int32_t> ids;
  for (; link >= 0; link = links_[static_cast<std::size_t>(link)].parent) {
    ids.push_back(links_[static_cast<std::size_t>(link)].token);
  }
  std::reverse(ids.begin(), ids.end());
  return ids;
}

std::vector<Hypothesis> BatchSearch::results(const Search& search) const {
  std::vector<Hypothesis> out;
  std::vector<Finished> finished = search.finished;
  if (options_.length_norm == "tokens" && length_ >= search.max_length) {
    // As in transformers: what reaches the limit competes with what has finished before.
    for (const Live& live : search.live) {
      if (live.log_probability == kNever) continue;
      finished.push_back(
          {live.log_probability / length_norm(options_, length_), live.log_probability, live.link});
    }
    std::stable_sort(finished.begin(), finished.end(),
                     [](const Finished& a, const Finished& b) { return a.score > b.score; });
  }
  for (const Finished& f : finished) {
    if (out.size() < n_best_) out.push_back({ids_up_to(f.link), f.score, f.log_probability});
  }
  for (const Live& live : search.live) {
    if (out.size() == n_best_ || live.log_probability == kNever) break;
    out.push_back({ids_up_to(live.link), live.log_probability / length_norm(options_, length_),
                   live.log_probability});
  }
  if (out.empty()) out.emplace_back();
  return out;
}

}  // namespace

double length_norm(const BeamOptions& options, int64_t length) {
  if (options.length_norm == "tokens") {
    return std::pow(static_cast<double>(length + options.given_tokens), options.length_penalty);
  }
  return std::pow((5.0 + static_cast<double>(length)) / 6.0, options.length_penalty);
}

int64_t max_output_length(const BeamOptions& options, int64_t source_length) {
  const double limit = options.max_length_factor * static_cast<double>(source_length) +
                       static_cast<double>(options.max_length_extra);
  return std::max<int64_t>(1, static_cast<int64_t>(limit));
}

std::vector<int32_t> excluded_ids(const SpecialIds& special, bool no_end) {
  std::vector<int32_t> ids =
      special.never.value_or(std::vector<int32_t>{special.pad, special.bos, special.unk});
  if (no_end) ids.push_back(special.eos);
  std::erase_if(ids, [](int32_t id) { return id < 0; });
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::vector<std::vector<Hypothesis>> beam_search(const DecodingModel& model,
                                                 const std::vector<std::vector<int32_t>>& sources,
                                                 const SpecialIds& special,
                                                 const BeamOptions& options, int64_t n_best) {
  if (n_best < 1 || n_best > options.beam_size) throw std::logic_error("n_best above the beam");
  std::vector<std::vector<Hypothesis>> out(sources.size(), {Hypothesis{}});
  decode_in_batches(model, sources, options.batch_tokens, [&](const auto& batch) {
    BatchSearch(model, special, options, n_best).run(sources, batch, out);
  });
  return out;
}

}  // namespace lockstep
