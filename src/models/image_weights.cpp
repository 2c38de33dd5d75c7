#include "models/image_weights.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "formats/weight_files.h"
#include "models/vit.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using torch::Tensor;

// Whether a tensor of theirs has no place here and does not affect what a network computes.
bool is_ignored(const std::string& name) {
  return name.ends_with("num_batches_tracked") || name.starts_with("vit.pooler.") ||
         name.starts_with("fc.") || name.starts_with("head.") || name.starts_with("heads.") ||
         name.starts_with("classifier.") || name.ends_with("embeddings.mask_token");
}

// Decides what is copied where before anything is copied.
class Reader {
 public:
  Reader(const WeightFiles& file, const Parameters& parameters, const HeadPlan& head)
      : file_(file), parameters_(parameters), head_(head), named_(name_tensors(file)) {
    if (!head.note.empty()) read_.notes.push_back(head.note);
    read_.file = file.path();
    read_.flavour = named_.flavour;
    read_.holds = describe_weights(named_);
    if (named_.family != family_of(parameters)) {
      throw DataError("{}: holds {}, not a {}", file.path().string(), read_.holds,
                      named_.family == ImageFamily::kVit ? "ResNet" : "ViT");
    }
  }

  ImageWeightsRead run() {
    const std::vector<WeightPlace> places = weight_places(named_.flavour, parameters_);
    std::set<std::string> known;
    for (const WeightPlace& place : places) {
      known.insert(place.theirs);
      plan(place);
    }
    for (const std::string& name : named_.order) {
      if (!known.contains(name) && !is_ignored(name) && !known.contains(other_norm(name))) {
        refuse(fmt::format("{} has no place in this network", name));
      }
    }
    for (const Copy& copy : copies_) copy.to.copy_(copy.from.view(copy.to.sizes()));
    read_.tensors = std::ssize(copies_);
    return read_;
  }

 private:
  struct Copy {
    Tensor to, from;
  };

  // Returns timm's other name of the last norm: after a mean or before it. Either norm serves as
  // the other.
  static std::string other_norm(const std::string& name) {
    if (name.starts_with("fc_norm.")) return name.substr(3);
    if (name.starts_with("norm.")) return "fc_" + name;
    return name;
  }

  const TensorEntry* find(const std::string& name) const {
    auto at = named_.tensors.find(name);
    if (at == named_.tensors.end()) at = named_.tensors.find(other_norm(name));
    return at == named_.tensors.end() ? nullptr : at->second;
  }

  void plan(const WeightPlace& place) {
    const TensorEntry* entry = find(place.theirs);
    const OwnTensor own = own_tensor(parameters_, place.ours);
    if (place.is_head && keeps_own_head(place, entry)) return;
    if (entry == nullptr) refuse(fmt::format("{} is not there", place.theirs));
    Tensor to = own.value.narrow(0, place.begin, place.rows);
    if (entry->shape == place.shape || entry->shape == own.shape) {
      copies_.push_back({to, as_fp32(file_.path(), *entry)});
      if (place.is_head && !head_.rows.empty()) {
        Tensor& from = copies_.back().from;
        from = from.index_select(0, torch::tensor(head_.rows, torch::kInt64));
      }
    } else if (place.ours == "pos_embed" && is_other_grid(*entry, own.shape)) {
      copies_.push_back({to, resized_positions(*entry, own.shape)});
    } else {
      refuse(fmt::format("{} is {}, here {}", place.theirs, shape_text(entry->shape),
                         shape_text(place.shape)));
    }
  }

  // A head for other classes is replaced; one of another width belongs to another network.
  bool keeps_own_head(const WeightPlace& place, const TensorEntry* entry) {
    if (head_.fresh) return true;
    if (entry != nullptr && (entry->shape == place.shape || entry->shape.empty())) return false;
    if (entry != nullptr && entry->shape.size() == 2 && entry->shape[1] != place.shape[1]) {
      return false;
    }
    if (!place.ours.ends_with(".weight")) return true;
    read_.notes.push_back(
        entry == nullptr ? fmt::format("no last layer there: {} as initialised", place.ours)
                         : fmt::format("last layer for {} classes there, {} here: as initialised",
                                       entry->shape[0], place.shape[0]));
    return true;
  }

  static int64_t grid_of(int64_t tokens) {
    return std::llround(std::sqrt(static_cast<double>(tokens - 1)));
  }

  // theirs: [1, tokens, width] or [tokens, width]; both grids are squares after a class token.
  static bool is_other_grid(const TensorEntry& entry, const std::vector<int64_t>& own) {
    const std::size_t n = entry.shape.size();
    if (n < 2 || n > 3 || (n == 3 && entry.shape[0] != 1) || entry.shape[n - 1] != own[1]) {
      return false;
    }
    const int64_t tokens = entry.shape[n - 2], grid = grid_of(tokens);
    return grid > 0 && 1 + grid * grid == tokens;
  }

  Tensor resized_positions(const TensorEntry& entry, const std::vector<int64_t>& own) {
    const Tensor all = as_fp32(file_.path(), entry).view({-1, own[1]});
    const int64_t from = grid_of(all.size(0)), to = grid_of(own[0]);
    read_.notes.push_back(
        fmt::format("positions of {0} x {0} patches interpolated to {1} x {1}", from, to));
    return torch::cat(
        {all.narrow(0, 0, 1), resize_grid(all.narrow(0, 1, from * from), from, to, to)});
  }

  [[noreturn]] void refuse(const std::string& difference) const {
    DataError error("{}: the weights of another network: {}", file_.path().string(), difference);
    error.set_cause("it holds " + read_.holds);
    throw error;
  }

  const WeightFiles& file_;
  const Parameters& parameters_;
  const HeadPlan& head_;
  NamedTensors named_;
  ImageWeightsRead read_;
  std::vector<Copy> copies_;
};

// Checks that config.json does not describe a network of the same shapes that
// computes something else.
void check_config(const fs::path& path, const ImageModel& model, ImageWeightsRead& read) {
  auto expect = [&](const Json& json, const char* key, const Json& expected) {
    if (!json.contains(key) || json.at(key) == expected) return;
    throw DataError("{}: the weights of another network: {} is {}, here {}", path.string(), key,
                    json.at(key).dump(), expected.dump());
  };
  try {
    const Json json = Json::parse(read_file(path));
    const auto* vit = dynamic_cast<const Vit*>(&model);
    if (vit == nullptr) {
      expect(json, "hidden_act", "relu");
      expect(json, "downsample_in_bottleneck", false);
      return expect(json, "downsample_in_first_stage", false);
    }
    expect(json, "num_attention_heads", vit->shape().heads);
    expect(json, "hidden_act", "gelu");
    const double epsilon = json.value("layer_norm_eps", 1e-12), own = vit->config().norm_epsilon;
    if (std::abs(epsilon - own) > 1e-3 * own) {
      read.notes.push_back(
          fmt::format("layer_norm_eps is {:g} there, model.norm_epsilon {:g} here", epsilon, own));
    }
  } catch (const nlohmann::json::exception& problem) {
    DataError error("{}: damaged", path.string());
    error.set_cause(problem.what());
    throw error;
  }
}

// Whether the names of the classes say nothing: "LABEL_3" of transformers, or numbers.
bool are_numbers(const std::vector<std::string>& classes) {
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const std::string number = std::to_string(i);
    if (classes[i] != number && classes[i] != "LABEL_" + number) return false;
  }
  return true;
}

}  // namespace

HeadPlan plan_head(const std::vector<std::string>& there, const std::vector<std::string>& here,
                   const std::string& rule) {
  HeadPlan out;
  if (rule == "new") {
    return {.fresh = true, .rows = {}, .note = "last layer as initialised (model.head = new)"};
  }
  if (there.size() != here.size() || there == here) return out;
  std::map<std::string, int64_t> labels;
  for (std::size_t i = 0; i < there.size(); ++i) labels[there[i]] = static_cast<int64_t>(i);
  for (const std::string& name : here) {
    const auto found = labels.find(name);
    if (found != labels.end()) out.rows.push_back(found->second);
  }
  if (out.rows.size() == here.size()) {
    out.note = fmt::format("last layer kept: the same {} classes in another order", here.size());
    return out;
  }
  out.rows.clear();
  if (are_numbers(there)) {
    out.note = fmt::format(
        "last layer kept, as there its {} classes are numbers; model.head=new begins it anew",
        there.size());
    return out;
  }
  const auto differs = static_cast<std::size_t>(
      std::mismatch(there.begin(), there.end(), here.begin()).first - there.begin());
  const std::string what =
      fmt::format("class {} is \"{}\" there, \"{}\" here", differs, there[differs], here[differs]);
  out.fresh = rule != "keep";
  out.note = out.fresh ? "last layer as initialised: " + what + "; model.head=keep takes it anyway"
                       : "last layer kept (model.head = keep), though " + what;
  return out;
}

fs::path image_weights_file(const fs::path& source) {
  const fs::path file = fs::is_directory(source) ? find_weight_file(source) : source;
  if (!fs::is_regular_file(file)) return {};
  if (!fs::is_directory(source) && file.extension() != ".safetensors") return {};
  return holds_image_weights(WeightFiles(file)) ? file : fs::path();
}

ImageWeightsRead read_image_weights(const fs::path& source, const ImageModel& model,
                                    Parameters& parameters, const HeadPlan& head) {
  torch::NoGradGuard no_grad;
  const WeightFiles file(fs::is_directory(source) ? find_weight_file(source) : source);
  const fs::path config = file.path().parent_path() / "config.json";
  ImageWeightsRead checked;
  if (name_tensors(file).flavour == WeightFlavour::kHuggingFace && fs::exists(config)) {
    check_config(config, model, checked);
  }
  ImageWeightsRead read = Reader(file, parameters, head).run();
  read.notes.insert(read.notes.end(), checked.notes.begin(), checked.notes.end());
  parameters.refresh_low();
  return read;
}

}  // namespace lockstep
