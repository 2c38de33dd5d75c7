#include "tasks/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "decode/decoding_batches.h"

namespace lockstep {
namespace {

// A token that may be drawn. The list starts with the most likely ones when only some of them may.
struct Choice {
  int32_t id;
  float logit;
};

bool more_likely(const Choice& a, const Choice& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

// Returns where the running sum of `weights` passes `share` of the total; at most the last index.
std::size_t place_of(const std::vector<double>& weights, double share) {
  const double wanted = share * std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  for (std::size_t i = 0; i + 1 < weights.size(); ++i) {
    sum += weights[i];
    if (sum > wanted) return i;
  }
  return weights.size() - 1;
}

struct DrawnSample {
  std::vector<int32_t> ids;
  double log_probability = 0;
  uint64_t key = 0;
  bool ended = false;
};

struct Sentence {
  std::size_t source = 0;
  int64_t max_length = 0;
  std::vector<DrawnSample> samples;

  bool done() const {
    return std::all_of(samples.begin(), samples.end(),
                       [](const DrawnSample& s) { return s.ended; });
  }
};

uint64_t sentence_key(const std::vector<int32_t>& ids, int64_t seed) {
  uint64_t key = mix64(static_cast<uint64_t>(seed) + 1);
  for (int32_t id : ids) key = combine_keys(key, static_cast<uint64_t>(id));
  return key;
}

class BatchSampling {
 public:
  BatchSampling(const DecodingModel& model, const SpecialIds& special, const BeamOptions& options,
                const SamplingOptions& sampling)
      : model_(model), special_(special), options_(options), sampling_(sampling) {}

  // Samples from sources[i], each not empty, for i in `batch`, and writes `count`
  // samples to each out[i].
  void run(const std::vector<std::vector<int32_t>>& sources, const std::vector<std::size_t>& batch,
           std::size_t count, std::vector<std::vector<Hypothesis>>& out);

 private:
  Sentence begin(const std::vector<int32_t>& ids, std::size_t source, std::size_t count) const;
  void extend(DrawnSample& sample, const float* logits, int64_t vocabulary) const;
  std::vector<Hypothesis> results(const Sentence& sentence) const;

  const DecodingModel& model_;
  SpecialIds special_;
  BeamOptions options_;
  SamplingOptions sampling_;
  int64_t length_ = 0;
};

Sentence BatchSampling::begin(const std::vector<int32_t>& ids, std::size_t source,
                              std::size_t count) const {
  Sentence sentence{source, max_output_length(options_, std::ssize(ids)), {}};
  const uint64_t key = sentence_key(ids, sampling_.seed);
  for (std::size_t k = 0; k < count; ++k) {
    sentence.samples.push_back({.key = combine_keys(key, static_cast<uint64_t>(k))});
  }
  return sentence;
}

void BatchSampling::extend(DrawnSample& sample, const float* logits, int64_t vocabulary) const {
  if (sample.ended) return;
  const double uniform =
      static_cast<double>(combine_keys(sample.key, static_cast<uint64_t>(length_)) >> 11) * 0x1p-53;
  const std::vector<int32_t> excluded = excluded_ids(special_, length_ < options_.min_length);
  const int32_t id = sample_token(logits, vocabulary, sampling_, excluded, uniform);
  const float largest = *std::max_element(logits, logits + vocabulary);
  double sum = 0;
  for (int64_t i = 0; i < vocabulary; ++i) sum += std::exp(logits[i] - largest);
  sample.log_probability += logits[id] - largest - std::log(sum);
  sample.ended = id == special_.eos;
  if (!sample.ended) sample.ids.push_back(id);
}

void BatchSampling::run(const std::vector<std::vector<int32_t>>& sources,
                        const std::vector<std::size_t>& batch, std::size_t count,
                        std::vector<std::vector<Hypothesis>>& out) {
  std::vector<Sentence> open;
  std::vector<std::vector<int32_t>> inputs;
  for (std::size_t i : batch) {
    open.push_back(begin(sources[i], i, count));
    inputs.push_back(sources[i]);
    inputs.back().push_back(special_.eos);
  }
  const std::unique_ptr<Decoder> decoder = model_.start(inputs);
  std::vector<int64_t> tokens(batch.size(), special_.bos);
  for (std::size_t rows_each = 1; !open.empty(); rows_each = count) {
    const int64_t rows_now = std::ssize(tokens);
    decoder->step(tokens);
    const std::vector<float> logits = decoder->logits();
    const int64_t vocabulary = std::ssize(logits) / rows_now;
    std::vector<Sentence> going_on;
    std::vector<int32_t> rows;
    tokens.clear();
    for (std::size_t s = 0; s < open.size(); ++s) {
      for (std::size_t k = 0; k < count; ++k) {
        const std::size_t row = s * rows_each + (rows_each == 1 ? 0 : k);
        const float* of_row = logits.data() + static_cast<int64_t>(row) * vocabulary;
        extend(open[s].samples[k], of_row, vocabulary);
      }
      if (open[s].done() || length_ + 1 >= open[s].max_length) {
        out[open[s].source] = results(open[s]);
        continue;
      }
      for (std::size_t k = 0; k < count; ++k) {
        const DrawnSample& sample = open[s].samples[k];
        rows.push_back(static_cast<int32_t>(s * rows_each + (rows_each == 1 ? 0 : k)));
        tokens.push_back(sample.ended ? special_.eos : sample.ids.back());
      }
      going_on.push_back(std::move(open[s]));
    }
    ++length_;
    open = std::move(going_on);
    if (!open.empty()) decoder->select(rows);
  }
}

std::vector<Hypothesis> BatchSampling::results(const Sentence& sentence) const {
  std::vector<Hypothesis> out;
  for (const DrawnSample& sample : sentence.samples) {
    const int64_t length = std::ssize(sample.ids) + (sample.ended ? 1 : 0);
    out.push_back({sample.ids, sample.log_probability / length_norm(options_, length),
                   sample.log_probability});
  }
  return out;
}

}  // namespace

int32_t sample_token(const float* logits, int64_t vocabulary, const SamplingOptions& options,
                     const std::vector<int32_t>& excluded, double uniform) {
  std::vector<Choice> choices;
  choices.reserve(static_cast<std::size_t>(vocabulary));
  for (int64_t i = 0; i < vocabulary; ++i) {
    const int32_t id = static_cast<int32_t>(i);
    if (std::find(excluded.begin(), excluded.end(), id) == excluded.end()) {
      choices.push_back({id, logits[i]});
    }
  }
  const bool cuts = options.top_k > 0 && options.top_k < std::ssize(choices);
  if (cuts) {
    std::nth_element(choices.begin(), choices.begin() + options.top_k - 1, choices.end(),
                     more_likely);
    choices.resize(static_cast<std::size_t>(options.top_k));
  }
  if (options.top_p < 1) std::sort(choices.begin(), choices.end(), more_likely);
  const float largest = std::min_element(choices.begin(), choices.end(), more_likely)->logit;
  std::vector<double> weights;
  weights.reserve(choices.size());
  for (const Choice& choice : choices) {
    weights.push_back(
        std::exp((static_cast<double>(choice.logit) - largest) / options.temperature));
  }
  if (options.top_p < 1) weights.resize(place_of(weights, options.top_p) + 1);
  return choices[place_of(weights, uniform)].id;
}

std::vector<std::vector<Hypothesis>> sample_translations(
    const DecodingModel& model, const std::vector<std::vector<int32_t>>& sources,
    const SpecialIds& special, const BeamOptions& options, const SamplingOptions& sampling,
    int64_t count) {
  if (count < 1) throw std::logic_error("fewer than one sample");
  std::vector<std::vector<Hypothesis>> out(sources.size(), {Hypothesis{}});
  decode_in_batches(model, sources, options.batch_tokens, [&](const auto& batch) {
    BatchSampling(model, special, options, sampling)
        .run(sources, batch, static_cast<std::size_t>(count), out);
  });
  return out;
}

}  // namespace lockstep
