#include "tasks/beam_search.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "models/decoder_state.h"
#include "tasks/candidates.h"

namespace lockstep {
namespace {

using torch::Tensor;

constexpr double kNever = -std::numeric_limits<double>::infinity();

// One token of a hypothesis; the tokens before it are found by following `parent`, an index into
// the links of the batch.
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

// A sentence that is being decoded.
struct Search {
  std::size_t source = 0;  // its place in the caller's list
  int64_t max_length = 0;
  std::vector<Live> live;
  std::vector<Finished> finished;  // the beam_size best, best first
};

// Searches for the sentences of one batch together.
class BatchSearch {
 public:
  BatchSearch(const Transformer& model, const SpecialIds& special, const BeamOptions& options,
              const Numerics& numerics)
      : model_(model), special_(special), options_(options), numerics_(numerics) {}

  // sources[i], each not empty, for i in `batch`; writes out[i].
  void run(const std::vector<std::vector<int32_t>>& sources, const std::vector<std::size_t>& batch,
           std::vector<Hypothesis>& out);

 private:
  double length_norm(int64_t length) const {
    return std::pow((5.0 + static_cast<double>(length)) / 6.0, options_.length_penalty);
  }
  Candidates candidates(DecoderState& state) const;
  std::vector<Continuation> continuations(const Search& search, const Candidates& candidates,
                                          int64_t first_row) const;
  void advance(Search& search, const std::vector<Continuation>& best, std::vector<int32_t>& beams);
  bool done(const Search& search) const;
  Hypothesis result(const Search& search) const;

  const Transformer& model_;
  SpecialIds special_;
  BeamOptions options_;
  Numerics numerics_;
  int64_t length_ = 0;  // tokens of every live hypothesis
  std::vector<Link> links_;
  std::vector<int64_t> tokens_;  // newest of every row
};

void BatchSearch::run(const std::vector<std::vector<int32_t>>& sources,
                      const std::vector<std::size_t>& batch, std::vector<Hypothesis>& out) {
  std::vector<Search> searches;
  std::vector<std::vector<int32_t>> inputs;
  for (std::size_t i : batch) {
    const double limit = options_.max_length_factor * static_cast<double>(sources[i].size()) +
                         static_cast<double>(options_.max_length_extra);
    searches.push_back({i, std::max<int64_t>(1, static_cast<int64_t>(limit)), {Live{}}, {}});
    inputs.push_back(sources[i]);
    inputs.back().push_back(special_.eos);
  }
  DecoderState state(model_, inputs, numerics_);
  tokens_.assign(batch.size(), special_.bos);
  while (!searches.empty()) {
    const Candidates step = candidates(state);
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
        out[search.source] = result(search);
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
    state.select(rows);
  }
}

Candidates BatchSearch::candidates(DecoderState& state) const {
  // One more than live on: at most one continuation of a row is </s>.
  const int64_t per_row = options_.beam_size + 1;
  std::vector<int32_t> excluded{special_.pad, special_.bos, special_.unk};
  if (length_ < options_.min_length) excluded.push_back(special_.eos);
  c10::InferenceMode inference;
  const Tensor tokens = torch::tensor(tokens_, torch::kInt64).to(model_.device());
  return best_candidates(model_.logits(state.step(tokens), numerics_), per_row, excluded,
                         numerics_);
}

// The 2 * beam_size best continuations, best first; of equal ones that of the better hypothesis.
std::vector<Continuation> BatchSearch::continuations(const Search& search,
                                                     const Candidates& candidates,
                                                     int64_t first_row) const {
  std::vector<Continuation> all;
  for (std::size_t beam = 0; beam < search.live.size(); ++beam) {
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

// Takes `best` into the finished and live hypotheses of the sentence; beams[i] becomes the former
// number of live hypothesis i.
void BatchSearch::advance(Search& search, const std::vector<Continuation>& best,
                          std::vector<int32_t>& beams) {
  const std::size_t k = static_cast<std::size_t>(options_.beam_size);
  std::vector<Live> next;
  for (std::size_t rank = 0; rank < best.size() && next.size() < k; ++rank) {
    const Continuation& c = best[rank];
    const int32_t parent = search.live[static_cast<std::size_t>(c.beam)].link;
    if (c.token == special_.eos) {
      if (rank < k) {
        search.finished.push_back(
            {c.log_probability / length_norm(length_), c.log_probability, parent});
      }
      continue;
    }
    links_.push_back({c.token, parent});
    next.push_back({c.log_probability, static_cast<int32_t>(links_.size()) - 1});
    beams.push_back(c.beam);
  }
  // A vocabulary of few tokens may not fill the beam: repeat the last one, never to be continued.
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
  if (search.finished.empty()) return false;
  const double best = search.live[0].log_probability;
  if (search.finished[0].score >= best / length_norm(search.max_length)) return true;
  return search.finished.size() == static_cast<std::size_t>(options_.beam_size) &&
         search.finished.back().score >= best / length_norm(length_);
}

Hypothesis BatchSearch::result(const Search& search) const {
  Hypothesis out;
  int32_t link = -1;
  if (!search.finished.empty()) {
    out.score = search.finished[0].score;
    out.log_probability = search.finished[0].log_probability;
    link = search.finished[0].link;
  } else if (!search.live.empty()) {
    out.log_probability = search.live[0].log_probability;
    out.score = out.log_probability / length_norm(length_);
    link = search.live[0].link;
  }
  for (; link >= 0; link = links_[static_cast<std::size_t>(link)].parent) {
    out.ids.push_back(links_[static_cast<std::size_t>(link)].token);
  }
  std::reverse(out.ids.begin(), out.ids.end());
  return out;
}

// Sentences of like length together, the longest first: those batches take longest, and threads
// that share them out end at the same time.
std::vector<std::vector<std::size_t>> make_batches(const std::vector<std::vector<int32_t>>& sources,
                                                   int64_t batch_tokens) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!sources[i].empty()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return sources[a].size() > sources[b].size();
  });
  std::vector<std::vector<std::size_t>> batches;
  std::size_t longest = 0;
  for (std::size_t i : order) {
    if (batches.empty() ||
        (batches.back().size() + 1) * longest > static_cast<std::size_t>(batch_tokens)) {
      batches.emplace_back();
      longest = sources[i].size() + 1;
    }
    batches.back().push_back(i);
  }
  return batches;
}

}  // namespace

std::vector<Hypothesis> beam_search(const Transformer& model,
                                    const std::vector<std::vector<int32_t>>& sources,
                                    const SpecialIds& special, const BeamOptions& options,
                                    const Numerics& numerics) {
  std::vector<Hypothesis> out(sources.size());
  const std::vector<std::vector<std::size_t>> batches = make_batches(sources, options.batch_tokens);
  auto decode = [&](std::size_t i) {
    BatchSearch(model, special, options, numerics).run(sources, batches[i], out);
  };
  const int64_t workers = std::min<int64_t>(at::get_num_threads(), std::ssize(batches));
  if (workers <= 1 || !model.device().is_cpu()) {
    for (std::size_t i = 0; i < batches.size(); ++i) decode(i);
    return out;
  }
  // Each thread takes whole batches: within one, the steps are too short to share.
  std::atomic<std::size_t> next{0};
  at::parallel_for(0, workers, 1, [&](int64_t, int64_t) {
    for (std::size_t i = next++; i < batches.size(); i = next++) decode(i);
  });
  return out;
}

}  // namespace lockstep
