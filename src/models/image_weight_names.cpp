#include "models/image_weight_names.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

struct FlavourRow {
  WeightFlavour flavour;
  std::string_view name;
};
constexpr std::array<FlavourRow, 3> kFlavours = {{{WeightFlavour::kTorchvision, "torchvision"},
                                                  {WeightFlavour::kTimm, "timm"},
                                                  {WeightFlavour::kHuggingFace, "huggingface"}}};

// A name that every file of a family and flavour contains.
struct Marker {
  ImageFamily family;
  WeightFlavour flavour;
  std::string_view name;
  std::string_view base;  // what transformers puts before all names except the head's
};
constexpr std::array<Marker, 5> kMarkers = {{
    {ImageFamily::kVit, WeightFlavour::kHuggingFace,
     "embeddings.patch_embeddings.projection.weight", "vit."},
    {ImageFamily::kVit, WeightFlavour::kTorchvision, "conv_proj.weight", ""},
    {ImageFamily::kVit, WeightFlavour::kTimm, "patch_embed.proj.weight", ""},
    {ImageFamily::kResNet, WeightFlavour::kHuggingFace, "embedder.embedder.convolution.weight",
     "resnet."},
    {ImageFamily::kResNet, WeightFlavour::kTorchvision, "layer1.0.conv1.weight", ""},
}};

// Our name without its last part, and that part: "blocks.3.attn.qkv" and ".weight".
struct Split {
  std::string stem, kind;
};
Split split_kind(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return {name, ""};
  return {name.substr(0, dot), name.substr(dot)};
}

using Renames = std::vector<std::pair<std::string_view, std::string_view>>;

std::string renamed(const std::string& stem, const Renames& renames) {
  for (const auto& [ours, theirs] : renames) {
    if (stem == ours) return std::string(theirs);
  }
  TORCH_CHECK(false, "no other name for the weight ", stem);
}

// "layer2.0.bn1" -> "resnet.encoder.stages.1.layers.0.layer.0.normalization".
std::string hugging_face_resnet(const std::string& stem) {
  const std::vector<std::string> parts = split(stem, '.');
  if (parts.size() == 1) {
    return renamed(stem, {{"conv1", "resnet.embedder.embedder.convolution"},
                          {"bn1", "resnet.embedder.embedder.normalization"},
                          {"fc", "classifier.1"}});
  }
  const int stage = parts[0].back() - '1';
  std::string out = fmt::format("resnet.encoder.stages.{}.layers.{}.", stage, parts[1]);
  if (parts[2] == "downsample") {
    return out + (parts[3] == "0" ? "shortcut.convolution" : "shortcut.normalization");
  }
  const bool norm = parts[2].starts_with("bn");
  return out +
         fmt::format("layer.{}.{}", parts[2].back() - '1', norm ? "normalization" : "convolution");
}

// Names in a ViT, outside and inside its blocks; Hugging Face has separate query, key and value.
const Renames kTorchvisionVit = {
    {"cls_token", "class_token"},      {"pos_embed", "encoder.pos_embedding"},
    {"patch_embed.proj", "conv_proj"}, {"norm", "encoder.ln"},
    {"fc_norm", "encoder.ln"},         {"head", "heads.head"}};
const Renames kTorchvisionBlock = {{"norm1", "ln_1"},
                                   {"attn.qkv", "self_attention.in_proj"},
                                   {"attn.proj", "self_attention.out_proj"},
                                   {"norm2", "ln_2"},
                                   {"mlp.fc1", "mlp.0"},
                                   {"mlp.fc2", "mlp.3"}};
const Renames kHuggingFaceVit = {{"cls_token", "vit.embeddings.cls_token"},
                                 {"pos_embed", "vit.embeddings.position_embeddings"},
                                 {"patch_embed.proj", "vit.embeddings.patch_embeddings.projection"},
                                 {"norm", "vit.layernorm"},
                                 {"fc_norm", "vit.layernorm"},
                                 {"head", "classifier"}};
const Renames kHuggingFaceBlock = {
    {"norm1", "layernorm_before"},           {"attn.qkv", "attention.attention"},
    {"attn.proj", "attention.output.dense"}, {"norm2", "layernorm_after"},
    {"mlp.fc1", "intermediate.dense"},       {"mlp.fc2", "output.dense"}};

// "blocks.3.attn.proj" -> the name in that flavour.
std::string vit_name(WeightFlavour flavour, const std::string& stem) {
  if (flavour == WeightFlavour::kTimm) return stem;
  const bool torchvision = flavour == WeightFlavour::kTorchvision;
  if (!stem.starts_with("blocks.")) {
    return renamed(stem, torchvision ? kTorchvisionVit : kHuggingFaceVit);
  }
  const std::size_t dot = stem.find('.', 7);
  const std::string number = stem.substr(7, dot - 7), inner = stem.substr(dot + 1);
  return torchvision
             ? fmt::format("encoder.layers.encoder_layer_{}.{}", number,
                           renamed(inner, kTorchvisionBlock))
             : fmt::format("vit.encoder.layer.{}.{}", number, renamed(inner, kHuggingFaceBlock));
}

// Returns the side of a patch in pixels, given the size of its three channels.
int64_t patch_of(int64_t inputs) {
  int64_t patch = 1;
  while (3 * patch * patch < inputs) ++patch;
  return patch;
}

// Returns the shape that the others give to our tokens, positions and projection of patches.
std::vector<int64_t> vit_shape(const std::string& name, const std::vector<int64_t>& shape) {
  if (name == "cls_token") return {1, 1, shape[0]};
  if (name == "pos_embed") return {1, shape[0], shape[1]};
  if (name != "patch_embed.proj.weight") return shape;
  const int64_t patch = patch_of(shape[1]);
  return {shape[0], 3, patch, patch};
}

void add_vit_places(WeightFlavour flavour, const Parameter& p, std::vector<WeightPlace>& out) {
  const auto [stem, kind] = split_kind(p.name);
  WeightPlace place{"", p.name, vit_shape(p.name, p.shape), 0, p.shape[0], stem == "head"};
  if (kind.empty()) {
    place.theirs = vit_name(flavour, stem);
    return out.push_back(place);
  }
  place.theirs = vit_name(flavour, stem) + kind;
  if (!stem.ends_with("attn.qkv") || flavour == WeightFlavour::kTimm) return out.push_back(place);
  if (flavour == WeightFlavour::kTorchvision) {  // in_proj_weight, in_proj_bias
    place.theirs = vit_name(flavour, stem) + "_" + kind.substr(1);
    return out.push_back(place);
  }
  place.shape[0] = place.rows = p.shape[0] / 3;
  for (const char* part : {".query", ".key", ".value"}) {
    place.theirs = vit_name(flavour, stem) + part + kind;
    out.push_back(place);
    place.begin += place.rows;
  }
}

std::string resnet_name(WeightFlavour flavour, const std::string& ours) {
  if (flavour != WeightFlavour::kHuggingFace) return ours;
  const auto [stem, kind] = split_kind(ours);
  return hugging_face_resnet(stem) + kind;
}

struct Found {
  const Marker* marker;
  std::string prefix;  // before the marker in the file's names
};
std::optional<Found> find_marker(const WeightFiles& file) {
  for (const Marker& marker : kMarkers) {
    for (const TensorEntry& entry : file.entries()) {
      if (!entry.name.ends_with(marker.name)) continue;
      const std::string prefix = entry.name.substr(0, entry.name.size() - marker.name.size());
      if (prefix.empty() || prefix.back() == '.') return Found{&marker, prefix};
    }
  }
  return std::nullopt;
}

// Replaces torchvision's names from before 0.13, which the files that it offers still have.
std::string without_numbers(std::string name) {
  const Renames renames = {{".mlp.linear_1.", ".mlp.0."}, {".mlp.linear_2.", ".mlp.3."}};
  for (const auto& [old, now] : renames) {
    const std::size_t at = name.find(old);
    if (at != std::string::npos) name.replace(at, old.size(), now);
  }
  return name;
}

}  // namespace

std::string_view flavour_name(WeightFlavour flavour) {
  for (const FlavourRow& row : kFlavours) {
    if (row.flavour == flavour) return row.name;
  }
  TORCH_CHECK(false, "no such flavour");
}

WeightFlavour flavour_named(const std::string& name) {
  std::vector<std::string> names;
  for (const FlavourRow& row : kFlavours) {
    if (row.name == name) return row.flavour;
    names.emplace_back(row.name);
  }
  throw ConfigError("no format \"{}\"{} ({})", name, did_you_mean(name, names), join(names, ", "));
}

ImageFamily family_of(const Parameters& parameters) {
  return parameters.find("patch_embed.proj.weight") != nullptr ? ImageFamily::kVit
                                                               : ImageFamily::kResNet;
}

std::vector<WeightPlace> weight_places(WeightFlavour flavour, const Parameters& parameters) {
  std::vector<WeightPlace> out;
  const bool vit = family_of(parameters) == ImageFamily::kVit;
  for (const ParameterRef& p : parameters.list()) {
    if (vit) {
      add_vit_places(flavour, *p, out);
    } else {
      out.push_back({resnet_name(flavour, p->name), p->name, p->shape, 0, p->shape[0],
                     p->name.starts_with("fc.")});
    }
  }
  for (const BufferRef& b : parameters.buffer_list()) {
    out.push_back({resnet_name(flavour, b->name), b->name, b->shape, 0, b->shape[0], false});
  }
  return out;
}

bool holds_image_weights(const WeightFiles& file) { return find_marker(file).has_value(); }

NamedTensors name_tensors(const WeightFiles& file) {
  const std::optional<Found> found = find_marker(file);
  if (!found) {
    DataError error("{}: neither a ResNet nor a ViT of torchvision, timm or transformers",
                    file.path().string());
    if (!file.entries().empty()) error.set_cause("it holds " + file.entries().front().name);
    throw error;
  }
  const Marker& marker = *found->marker;
  const bool has_base = found->prefix.ends_with(marker.base);
  const std::string outer =
      has_base ? found->prefix.substr(0, found->prefix.size() - marker.base.size()) : found->prefix;
  NamedTensors out{marker.family, marker.flavour, {}, {}};
  for (const TensorEntry& entry : file.entries()) {
    std::string name = entry.name;
    if (name.starts_with(outer)) name = name.substr(outer.size());
    if (!has_base && !name.starts_with("classifier.")) name = std::string(marker.base) + name;
    name = without_numbers(name);
    out.order.push_back(name);
    out.tensors[name] = &entry;
  }
  return out;
}

std::string describe_weights(const NamedTensors& named) {
  auto count = [&](auto&& condition) {
    return std::count_if(named.tensors.begin(), named.tensors.end(),
                         [&](const auto& item) { return condition(item.first, *item.second); });
  };
  if (named.family == ImageFamily::kVit) {
    const int64_t blocks = count([](const std::string& name, const TensorEntry&) {
      return name.ends_with("norm1.weight") || name.ends_with("ln_1.weight") ||
             name.ends_with("layernorm_before.weight");
    });
    int64_t width = 0, patch = 0;
    for (const Marker& marker : kMarkers) {
      const auto at = named.tensors.find(std::string(marker.base) + std::string(marker.name));
      if (at == named.tensors.end() || at->second->shape.size() < 2) continue;
      const std::vector<int64_t>& shape = at->second->shape;  // [width, 3, patch, patch], or ours
      width = shape[0];
      patch = shape.size() == 4 ? shape[3] : patch_of(shape[1]);
    }
    return fmt::format("a ViT of width {} with {} blocks and patches of {}", width, blocks, patch);
  }
  const int64_t convolutions =
      count([](const std::string&, const TensorEntry& entry) { return entry.shape.size() == 4; });
  // Convolutions in branches, stem and shortcuts together.
  for (const auto& [depth, expected] : {std::pair{18, 20}, std::pair{34, 36}, std::pair{50, 53},
                                        std::pair{101, 104}, std::pair{152, 155}}) {
    if (convolutions == expected) return fmt::format("a ResNet-{}", depth);
  }
  return fmt::format("a network with {} convolutions", convolutions);
}

}  // namespace lockstep
