#include "models/transformer_places.h"

#include <fmt/format.h>

namespace lockstep {
namespace {

// Collects the places of one network.
class TransformerPlaces {
 public:
  explicit TransformerPlaces(const Parameters& parameters)
      : parameters_(parameters), width_(parameters.find("embedding.weight")->shape[1]) {}

  std::vector<WeightPlace> run() {
    for (const char* side : {"encoder", "decoder"}) {
      for (int64_t i = 0; add_layer(side, i); ++i) {
      }
      const std::string norm = fmt::format("{}.norm", side);
      if (parameters_.find(norm + ".weight") != nullptr) {
        add(fmt::format("model.{}.layer_norm", side), norm, 0, width_);
      }
    }
    return std::move(out_);
  }

 private:
  // Adds a weight and its bias: `rows` rows, from `begin` on, of ours.
  void add(const std::string& theirs, const std::string& ours, int64_t begin, int64_t rows) {
    for (const char* kind : {".weight", ".bias"}) {
      const Parameter* p = parameters_.find(ours + kind);
      std::vector<int64_t> shape{rows};
      if (p != nullptr && p->shape.size() == 2) shape.push_back(p->shape[1]);
      out_.push_back({theirs + kind, ours + kind, shape, begin, rows});
    }
  }

  // Adds query, key and value, or the part of them that stands in `ours`.
  void add_projections(const std::string& theirs, const std::string& ours,
                       const std::vector<const char*>& names) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      add(theirs + names[i], ours, static_cast<int64_t>(i) * width_, width_);
    }
  }

  bool add_layer(const std::string& side, int64_t number) {
    const bool decoder = side == "decoder";
    const std::string ours = fmt::format("{}.{}.", side, number);
    const std::string theirs = fmt::format("model.{}.layers.{}.", side, number);
    const Parameter* up = parameters_.find(ours + "feed_forward.up.weight");
    if (up == nullptr) return false;
    add_projections(theirs, ours + "attention.qkv",
                    {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"});
    add(theirs + "self_attn.out_proj", ours + "attention.out", 0, width_);
    add(theirs + "self_attn_layer_norm", ours + "norm1", 0, width_);
    if (decoder) {
      add_projections(theirs, ours + "cross.query", {"encoder_attn.q_proj"});
      add_projections(theirs, ours + "cross.memory",
                      {"encoder_attn.k_proj", "encoder_attn.v_proj"});
      add(theirs + "encoder_attn.out_proj", ours + "cross.out", 0, width_);
      add(theirs + "encoder_attn_layer_norm", ours + "norm2", 0, width_);
    }
    add(theirs + "fc1", ours + "feed_forward.up", 0, up->shape[0]);
    add(theirs + "fc2", ours + "feed_forward.down", 0, width_);
    add(theirs + "final_layer_norm", ours + (decoder ? "norm3" : "norm2"), 0, width_);
    return true;
  }

  const Parameters& parameters_;
  int64_t width_;
  std::vector<WeightPlace> out_;
};

}  // namespace

std::vector<WeightPlace> transformer_places(const Parameters& parameters) {
  return TransformerPlaces(parameters).run();
}

}  // namespace lockstep
