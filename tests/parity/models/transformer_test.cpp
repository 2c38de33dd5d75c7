// Our Transformer against one put together from PyTorch's own modules (MultiheadAttention,
// LayerNorm, Linear, Embedding, CrossEntropyLoss with label smoothing, Adam) on padded batches,
// with the same weights; for every variant that a configuration can ask for.
#include "models/transformer.h"

#include <gtest/gtest.h>
#include <torch/nn.h>
#include <torch/optim.h>

#include <cmath>

#include "arrays/update.h"
#include "nn/cross_entropy.h"
#include "nn/embedding.h"
#include "support/tiny_transformer.h"

namespace lockstep {
namespace {

using torch::Tensor;

constexpr double kSmoothing = 0.1;
constexpr int64_t kNoTarget = -100;

struct Batch {
  std::vector<std::vector<int32_t>> sources, inputs, targets;
};

// With `zero`, sentences are wrapped in <s> (2) and </s> (1) and inputs begin with a zero vector.
Batch make_batch(const std::vector<int64_t>& source_lengths,
                 const std::vector<int64_t>& target_lengths, int64_t vocabulary, bool zero) {
  Batch batch;
  batch.sources = random_sentences(source_lengths, vocabulary, 5);
  batch.targets = random_sentences(target_lengths, vocabulary, 6);
  for (auto& source : batch.sources) {
    source.back() = 1;
    if (zero) source.insert(source.begin(), 2);
  }
  for (auto& target : batch.targets) {
    target.back() = 1;
    if (zero) target.insert(target.begin(), 2);
    batch.inputs.push_back({zero ? static_cast<int32_t>(kZeroToken) : 2});
    batch.inputs.back().insert(batch.inputs.back().end(), target.begin(), target.end() - 1);
  }
  return batch;
}

// [time, sentences], as MultiheadAttention wants it.
Tensor padded(const std::vector<std::vector<int32_t>>& sentences, int64_t padding) {
  std::size_t longest = 0;
  for (const auto& sentence : sentences) longest = std::max(longest, sentence.size());
  Tensor out =
      torch::full({static_cast<int64_t>(longest), std::ssize(sentences)}, padding, torch::kInt64);
  for (int64_t s = 0; s < std::ssize(sentences); ++s) {
    const auto& sentence = sentences[static_cast<std::size_t>(s)];
    for (int64_t t = 0; t < std::ssize(sentence); ++t) {
      out[t][s] = static_cast<int64_t>(sentence[static_cast<std::size_t>(t)]);
    }
  }
  return out;
}

// PyTorch's side. Modules are named as our parameters are; `weights_of` says which of PyTorch's
// tensors (slices for the projections that one side stacks) holds which of ours.
struct Reference {
  Reference(const TransformerConfig& config, int64_t vocabulary) : config(config) {
    const int64_t d = config.d_model;
    embedding = torch::nn::Embedding(vocabulary, d);
    keep("embedding", embedding->weight);
    for (int64_t i = 0; i < config.encoder_layers; ++i) {
      const std::string name = "encoder." + std::to_string(i) + ".";
      encoder.push_back({norm(name + "norm1"), attention(name, false), norm(name + "norm2"),
                         linear(name + "feed_forward.up", d, config.feed_forward),
                         linear(name + "feed_forward.down", config.feed_forward, d)});
    }
    if (config.pre_norm()) encoder_norm = norm("encoder.norm");
    for (int64_t i = 0; i < config.decoder_layers; ++i) {
      const std::string name = "decoder." + std::to_string(i) + ".";
      Layer layer{norm(name + "norm1"), attention(name, false), norm(name + "norm3"),
                  linear(name + "feed_forward.up", d, config.feed_forward),
                  linear(name + "feed_forward.down", config.feed_forward, d)};
      layer.cross_norm = norm(name + "norm2");
      layer.cross = attention(name, true);
      decoder.push_back(layer);
    }
    if (config.pre_norm()) decoder_norm = norm("decoder.norm");
  }

  struct Layer {
    torch::nn::LayerNorm norm{nullptr};
    torch::nn::MultiheadAttention attention{nullptr};
    torch::nn::LayerNorm last_norm{nullptr};
    torch::nn::Linear up{nullptr}, down{nullptr};
    torch::nn::LayerNorm cross_norm{nullptr};
    torch::nn::MultiheadAttention cross{nullptr};
  };

  // One of our parameters inside a tensor of PyTorch's: rows [begin, begin + count).
  struct Place {
    Tensor tensor;
    int64_t begin, count;
    Tensor of(const Tensor& t) const { return t.narrow(0, begin, count); }
  };

  void keep(const std::string& name, const Tensor& weight, const Tensor& bias = {}) {
    leaves.push_back(weight);
    places[name + ".weight"] = {weight, 0, weight.size(0)};
    if (!bias.defined()) return;
    leaves.push_back(bias);
    places[name + ".bias"] = {bias, 0, bias.size(0)};
  }
  torch::nn::LayerNorm norm(const std::string& name) {
    torch::nn::LayerNorm m(torch::nn::LayerNormOptions({config.d_model}).eps(config.norm_epsilon));
    keep(name, m->weight, m->bias);
    return m;
  }
  torch::nn::Linear linear(const std::string& name, int64_t in, int64_t out) {
    torch::nn::Linear m(in, out);
    keep(name, m->weight, m->bias);
    return m;
  }
  torch::nn::MultiheadAttention attention(const std::string& layer, bool cross) {
    const int64_t d = config.d_model;
    torch::nn::MultiheadAttention m(
        torch::nn::MultiheadAttentionOptions(d, config.heads).bias(config.attention_bias));
    const std::string name = layer + (cross ? "cross" : "attention");
    keep(name + ".out", m->out_proj->weight, m->out_proj->bias);
    for (auto& [kind, tensor] :
         {std::pair{".weight", m->in_proj_weight}, std::pair{".bias", m->in_proj_bias}}) {
      if (!tensor.defined()) continue;
      leaves.push_back(tensor);
      if (cross) {
        places[name + ".query" + kind] = {tensor, 0, d};
        places[name + ".memory" + kind] = {tensor, d, 2 * d};
      } else {
        places[name + ".qkv" + kind] = {tensor, 0, 3 * d};
      }
    }
    return m;
  }

  void copy_weights(const Parameters& from) {
    torch::NoGradGuard no_grad;
    for (const ParameterRef& p : from.list()) {
      const Place& place = places.at(p->name);
      place.of(place.tensor).copy_(p->value);
    }
  }

  // Section 3.5 of the paper, or Tensor2Tensor's get_timing_signal: [time, d].
  Tensor positions(int64_t time) const {
    Tensor out = torch::empty({time, config.d_model});
    const int64_t half = config.d_model / 2;
    for (int64_t t = 0; t < time; ++t) {
      for (int64_t i = 0; i < half; ++i) {
        const bool halves = config.positions == "halves";
        const double exponent = halves ? static_cast<double>(i) / static_cast<double>(half - 1)
                                       : 2.0 * static_cast<double>(i) / (2.0 * half);
        const double angle = static_cast<double>(t) / std::pow(10000.0, exponent);
        out[t][halves ? i : 2 * i] = std::sin(angle);
        out[t][halves ? half + i : 2 * i + 1] = std::cos(angle);
      }
    }
    return out;
  }

  Tensor embed(const Tensor& ids) const {  // [time, sentences] -> [time, sentences, d]
    const Tensor entries = torch::nn::functional::embedding(ids.clamp_min(0), embedding->weight);
    return entries.masked_fill((ids < 0).unsqueeze(2), 0) *
               std::sqrt(static_cast<double>(config.d_model)) +
           positions(ids.size(0)).unsqueeze(1);
  }

  // A block of the stream x: f of its norm added, or the norm of x + f(x).
  template <class F>
  Tensor block(const Tensor& x, torch::nn::LayerNorm& norm, const F& f) const {
    return config.pre_norm() ? x + f(norm(x)) : norm(x + f(x));
  }
  Tensor inner(Layer& l, const Tensor& x) const {
    const Tensor up = l.up(x);
    return l.down(config.activation == "gelu" ? torch::nn::functional::gelu(up) : torch::relu(up));
  }

  // -> [time, sentences, d]; padding in `sources` and `inputs` is 0.
  Tensor forward(const Tensor& sources, const Tensor& inputs) {
    const Tensor hidden_keys = (sources == 0).transpose(0, 1);  // true in the padding
    const Tensor later =
        torch::full({inputs.size(0), inputs.size(0)}, -std::numeric_limits<float>::infinity())
            .triu(1);
    Tensor x = embed(sources);
    for (Layer& l : encoder) {
      x = block(x, l.norm, [&](const Tensor& y) {
        return std::get<0>(l.attention(y, y, y, hidden_keys, false));
      });
      x = block(x, l.last_norm, [&](const Tensor& y) { return inner(l, y); });
    }
    const Tensor memory = config.pre_norm() ? encoder_norm(x) : x;
    x = embed(inputs);
    for (Layer& l : decoder) {
      x = block(x, l.norm, [&](const Tensor& y) {
        return std::get<0>(l.attention(y, y, y, Tensor(), false, later));
      });
      x = block(x, l.cross_norm, [&](const Tensor& y) {
        return std::get<0>(l.cross(y, memory, memory, hidden_keys, false));
      });
      x = block(x, l.last_norm, [&](const Tensor& y) { return inner(l, y); });
    }
    return config.pre_norm() ? decoder_norm(x) : x;
  }

  TransformerConfig config;
  torch::nn::Embedding embedding{nullptr};
  std::vector<Layer> encoder, decoder;
  torch::nn::LayerNorm encoder_norm{nullptr}, decoder_norm{nullptr};
  std::map<std::string, Place> places;
  std::vector<Tensor> leaves;
};

// |a - b| over the largest |b|.
double difference(const Tensor& a, const Tensor& b) {
  return ((a - b).abs().max() / b.abs().max()).item<double>();
}

struct Variant {
  const char* name;
  bool fused;
  const char* key = "";  // the one that differs from the default, or "faithful": OpenSeq2Seq's
};
void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

TransformerConfig variant_config(const std::string& key) {
  TransformerConfig config = TinyTransformer::tiny_config();
  config.d_model = 32;
  config.heads = 4;
  if (key == "norm") config.norm = "post";
  if (key == "activation") config.activation = "gelu";
  if (key == "attention_bias" || key == "faithful") config.attention_bias = false;
  if (key == "positions" || key == "faithful") config.positions = "halves";
  if (key == "start" || key == "faithful") config.start = "zero";
  if (key == "norm_epsilon" || key == "faithful") config.norm_epsilon = 1e-2;  // so that it shows
  return config;
}

class TransformerParity : public ::testing::TestWithParam<Variant> {
 protected:
  static constexpr int64_t kVocabulary = 61;
  // fp32 has 24 bits, 6e-8. Sums of up to 61 terms in another order, in eight blocks one behind the
  // other and back through them, lose a digit or two of these.
  static constexpr double kForward = 1e-5, kBackward = 5e-5;

  TransformerParity() : reference_(config(), kVocabulary), ours_(config(), kVocabulary, 3) {
    at::set_num_threads(1);  // nothing here is worth waking a thread
    context_.numerics.fused = GetParam().fused;
    batch_ = make_batch({5, 1, 9, 3, 7}, {4, 8, 1, 6, 3}, kVocabulary, config().starts_with_zero());
    reference_.copy_weights(ours_.parameters);
  }
  static TransformerConfig config() { return variant_config(GetParam().key); }

  // Runs both sides forward and backward with the smoothed loss, summed over target tokens.
  void run() {
    std::vector<int64_t> flat;
    for (const auto& target : batch_.targets) flat.insert(flat.end(), target.begin(), target.end());
    our_hidden_ = ours_.model.forward(translation_input(batch_.sources, batch_.inputs), context_);
    our_result_ =
        smoothed_cross_entropy(our_hidden_, ours_.model.table(), torch::tensor(flat, torch::kInt64),
                               kSmoothing, context_.numerics);
    our_result_.loss.backward();

    const Tensor targets = padded(batch_.targets, kNoTarget).transpose(0, 1);  // [sentences, time]
    const Tensor hidden =
        reference_.forward(padded(batch_.sources, 0), padded(batch_.inputs, 0)).transpose(0, 1);
    const Tensor logits = torch::nn::functional::linear(hidden, reference_.embedding->weight);
    torch::nn::CrossEntropyLoss loss(torch::nn::CrossEntropyLossOptions()
                                         .reduction(torch::kSum)
                                         .label_smoothing(kSmoothing)
                                         .ignore_index(kNoTarget));
    their_loss_ = loss(logits.flatten(0, 1), targets.flatten());
    const Tensor real = targets.flatten() != kNoTarget;
    their_hidden_ = hidden.flatten(0, 1).index({real});
    their_logits_ = logits.flatten(0, 1).index({real});
    their_targets_ = targets.flatten().index({real});
    their_loss_.backward();
  }

  // One step of Adam on both sides, on the mean over the tokens.
  void step_both() {
    torch::NoGradGuard no_grad;
    const double tokens = static_cast<double>(their_targets_.size(0));
    // The gradients are ours on both sides, because Adam's first
    // step is lr * g / (|g| + epsilon): the sign of a gradient that is only rounding decides it.
    for (const ParameterRef& p : ours_.parameters.list()) {
      const Reference::Place& place = reference_.places.at(p->name);
      place.of(place.tensor.grad()).copy_(p->value.grad());
    }
    for (Tensor& leaf : reference_.leaves) leaf.mutable_grad().div_(tokens);
    torch::optim::Adam adam(reference_.leaves,
                            torch::optim::AdamOptions(1e-3).betas({0.9, 0.98}).eps(1e-9));
    adam.step();

    const Tensor& values = ours_.parameters.values();
    Tensor m = torch::zeros_like(values), v = torch::zeros_like(values);
    UpdateArrays arrays{values.data_ptr<float>(),
                        ours_.parameters.gradients().data_ptr<float>(),
                        m.data_ptr<float>(),
                        v.data_ptr<float>(),
                        nullptr,
                        nullptr};
    AdamStep step;
    step.beta2 = 0.98;
    step.epsilon = 1e-9;
    step.gradient_scale = 1 / tokens;
    adam_step(arrays, step, 0, values.numel());
  }

  Reference reference_;
  TinyTransformer ours_;
  ForwardContext context_;
  Batch batch_;
  Tensor our_hidden_, their_hidden_, their_logits_, their_targets_, their_loss_;
  CrossEntropyResult our_result_;
};

TEST_P(TransformerParity, ForwardEqualsPyTorchsModules) {
  run();
  ASSERT_EQ(our_hidden_.sizes(), their_hidden_.sizes());
  EXPECT_LT(difference(our_hidden_, their_hidden_), kForward);
  torch::NoGradGuard no_grad;
  EXPECT_LT(difference(ours_.model.logits(our_hidden_, context_.numerics), their_logits_),
            kForward);
  EXPECT_LT(difference(our_result_.loss, their_loss_), kForward);
  const Tensor nll = torch::nn::functional::nll_loss(
      their_logits_.log_softmax(1), their_targets_,
      torch::nn::functional::NLLLossFuncOptions().reduction(torch::kSum));
  EXPECT_LT(difference(our_result_.nll, nll), kForward);
  EXPECT_EQ(our_result_.correct.item<int64_t>(),
            (their_logits_.argmax(1) == their_targets_).sum().item<int64_t>());
}

TEST_P(TransformerParity, EveryGradientEqualsPyTorchs) {
  run();
  for (const ParameterRef& p : ours_.parameters.list()) {
    const Reference::Place& place = reference_.places.at(p->name);
    const Tensor theirs = place.of(place.tensor.grad());
    // Bias of the keys: adding one vector to all keys does not change the softmax, so this part of
    // the gradient is zero but for rounding; it is measured by the whole of qkv (or memory).
    EXPECT_LT(difference(p->value.grad(), theirs), kBackward) << p->name;
  }
}

TEST_P(TransformerParity, OneAdamStepEqualsPyTorchs) {
  run();
  step_both();
  for (const ParameterRef& p : ours_.parameters.list()) {
    const Reference::Place& place = reference_.places.at(p->name);
    EXPECT_LT(difference(p->value.detach(), place.of(place.tensor.detach())), 1e-6) << p->name;
  }
  run();  // and the network after the step
  EXPECT_LT(difference(our_result_.loss, their_loss_), kForward);
}

INSTANTIATE_TEST_SUITE_P(
    Variants, TransformerParity,
    testing::Values(
        Variant{"Fused", true}, Variant{"Plain", false}, Variant{"PostNormFused", true, "norm"},
        Variant{"PostNormPlain", false, "norm"}, Variant{"GeluFused", true, "activation"},
        Variant{"WithoutAttentionBiasFused", true, "attention_bias"},
        Variant{"HalvesFused", true, "positions"}, Variant{"ZeroStartFused", true, "start"},
        Variant{"NormEpsilonFused", true, "norm_epsilon"},
        Variant{"FaithfulFused", true, "faithful"}, Variant{"FaithfulPlain", false, "faithful"}),
    [](const auto& variant) { return std::string(variant.param.name); });

}  // namespace
}  // namespace lockstep
