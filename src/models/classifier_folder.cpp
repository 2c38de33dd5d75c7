#include "models/classifier_folder.h"

#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "models/vit.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// Calls `read` with the file's JSON. Throws DataError, with the file's name, when it is damaged.
template <typename Read>
void with_json(const fs::path& path, Read read) {
  try {
    read(Json::parse(read_file(path)));
  } catch (const Json::exception& problem) {
    DataError error("{}: damaged", path.string());
    error.set_cause(problem.what());
    throw error;
  }
}

[[noreturn]] void refuse(const fs::path& folder, const std::string& what) {
  throw DataError("{}: {}; expected one of {}", (folder / "config.json").string(), what,
                  join(image_models().names(), ", "));
}

struct NamedVit {
  const char* name;
  VitShape shape;
};
constexpr NamedVit kVits[] = {
    {"vit_ti16", kVitTiny}, {"vit_s16", kVitSmall}, {"vit_b16", kVitBase}, {"vit_l16", kVitLarge}};

struct NamedResNet {
  const char* name;
  std::vector<int64_t> depths;
  bool bottleneck;
};
const NamedResNet kResNets[] = {{"resnet18", {2, 2, 2, 2}, false},
                                {"resnet34", {3, 4, 6, 3}, false},
                                {"resnet50", {3, 4, 6, 3}, true},
                                {"resnet101", {3, 4, 23, 3}, true},
                                {"resnet152", {3, 8, 36, 3}, true}};

std::string vit_name(const fs::path& folder, int64_t width, int64_t layers, int64_t heads,
                     int64_t inner) {
  for (const auto& [name, shape] : kVits) {
    if (shape.width == width && shape.layers == layers && shape.heads == heads &&
        shape.inner == inner) {
      return name;
    }
  }
  refuse(folder, fmt::format("a ViT of {} layers, {} wide, with {} heads and {} inside", layers,
                             width, heads, inner));
}

std::string resnet_name(const fs::path& folder, const Json& json) {
  const auto depths = json.at("depths").get<std::vector<int64_t>>();
  const bool bottleneck = json.value("layer_type", "bottleneck") == "bottleneck";
  for (const NamedResNet& known : kResNets) {
    if (known.depths == depths && known.bottleneck == bottleneck) return known.name;
  }
  refuse(folder, fmt::format("a ResNet of other depths ({})", json.at("depths").dump()));
}

// The file may say anything: a network of any size is not made of it.
int64_t checked_width(const fs::path& folder, int64_t width) {
  if (width >= kLeastWidth && width < kWidthsEnd) return width;
  throw DataError("{}: a ResNet of width {}; expected {} to {}", (folder / "config.json").string(),
                  width, kLeastWidth, kWidthsEnd - 1);
}

// Returns the channels of the first stage. Stages of transformers' ResNets may have any number;
// here each has twice those of the one before.
int64_t resnet_width(const fs::path& folder, const Json& json) {
  const int64_t width = checked_width(folder, json.value("embedding_size", int64_t{64}));
  const int64_t outputs = json.value("layer_type", "bottleneck") == "bottleneck" ? 4 : 1;
  const auto stages = json.value("hidden_sizes", std::vector<int64_t>{256, 512, 1024, 2048});
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (stages[i] == outputs * width << i) continue;
    refuse(folder, fmt::format("a ResNet whose stages do not double their width from {} on ({})",
                               width, fmt::join(stages, ", ")));
  }
  return width;
}

// Returns the shorter side of which the crop takes that share, rounded as timm does.
int64_t resized_side(int64_t crop, double share) {
  return static_cast<int64_t>(std::floor(static_cast<double>(crop) / share + 1e-6));
}

// A model that was never taught classes may have none.
void read_labels(const Json& json, ClassifierFolder& out) {
  const Json labels = json.value("id2label", Json::object());
  out.classes.resize(labels.size());
  for (const auto& [id, name] : labels.items()) out.classes.at(std::stoul(id)) = name;
}

void read_transformers(const fs::path& folder, const Json& json, ClassifierFolder& out) {
  if (json.at("model_type") == "vit") {
    out.model.name = vit_name(folder, json.at("hidden_size"), json.at("num_hidden_layers"),
                              json.at("num_attention_heads"), json.at("intermediate_size"));
    out.model.patch = json.at("patch_size");
    out.model.norm_epsilon = json.value("layer_norm_eps", 1e-12);
    out.size = out.resize = json.at("image_size");
  } else {
    out.model.name = resnet_name(folder, json);
    out.model.width = resnet_width(folder, json);
  }
  read_labels(json, out);
  if (json.value("torch_dtype", "float32") == "bfloat16") out.precision = "bf16";
}

// Reads the processors of transformers: the shorter side and a centre crop; a square without a crop
// (ViTImageProcessor); or the share of the side that the crop takes (ConvNextImageProcessor).
void read_processor(const Json& json, ClassifierFolder& out) {
  if (json.contains("image_mean")) out.mean = json.at("image_mean").get<std::vector<double>>();
  if (json.contains("image_std")) out.std = json.at("image_std").get<std::vector<double>>();
  out.interpolation = json.value("resample", 2) == 3 ? "bicubic" : "bilinear";
  const Json size = json.value("size", Json::object());
  int64_t shortest = out.size;
  if (size.is_number()) {
    shortest = size;
  } else if (size.contains("shortest_edge")) {
    shortest = size.at("shortest_edge");
  } else if (size.contains("height")) {
    shortest = size.at("height");
    out.notes.emplace_back(
        "it resizes to a square there; here the shorter side, then the middle is cut out");
  }
  out.resize = out.size = shortest;
  if (json.contains("crop_pct") && json.at("crop_pct").is_number() && shortest < 384) {
    out.resize = resized_side(shortest, json.at("crop_pct"));
  }
  if (json.value("do_center_crop", false) && json.contains("crop_size")) {
    const Json& crop = json.at("crop_size");
    out.size = crop.is_number() ? crop.get<int64_t>() : crop.at("height").get<int64_t>();
  }
  if (!json.value("do_resize", true)) out.resize = 0;
}

void read_timm(const fs::path& folder, const Json& json, ClassifierFolder& out) {
  const std::string architecture = json.at("architecture");
  const Json& pretrained = json.at("pretrained_cfg");
  if (architecture.starts_with("vit_")) {
    const Json arguments = json.value("model_args", Json::object());
    for (const auto& [size, name] : {std::pair{"vit_tiny", "vit_ti16"},
                                     {"vit_small", "vit_s16"},
                                     {"vit_base", "vit_b16"},
                                     {"vit_large", "vit_l16"}}) {
      if (architecture.starts_with(size)) out.model.name = name;
    }
    const std::size_t patch = architecture.find("_patch");
    if (out.model.name.starts_with("vit") && patch != std::string::npos) {
      out.model.patch = arguments.value("patch_size", std::stoll(architecture.substr(patch + 6)));
    } else {
      refuse(folder, "architecture " + architecture);
    }
    out.model.pool = json.value("global_pool", "token") == "avg" ? "mean" : "class";
  } else {
    out.model.name = architecture;
    out.model.stem = json.value("stem", "imagenet");
    out.model.width = checked_width(folder, json.value("width", int64_t{64}));
    if (image_models().find(architecture) == nullptr) {
      refuse(folder, "architecture " + architecture);
    }
  }
  out.classes = json.value("label_names", std::vector<std::string>{});
  for (int64_t label = std::ssize(out.classes); label < json.at("num_classes"); ++label) {
    out.classes.push_back(std::to_string(label));
  }
  out.size = pretrained.at("input_size").at(1);
  out.resize = resized_side(out.size, pretrained.value("crop_pct", 0.875));
  out.interpolation = pretrained.value("interpolation", "bilinear");
  out.mean = pretrained.at("mean").get<std::vector<double>>();
  out.std = pretrained.at("std").get<std::vector<double>>();
}

}  // namespace

bool is_classifier_folder(const fs::path& folder) {
  const fs::path config = folder / "config.json";
  if (!fs::exists(config)) return false;
  const Json json = Json::parse(read_file(config), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return false;
  const std::string type = json.value("model_type", "");
  return type == "vit" || type == "resnet" || json.contains("pretrained_cfg");
}

ClassifierFolder read_classifier_folder(const fs::path& folder) {
  ClassifierFolder out;
  out.mean = {0.485, 0.456, 0.406};
  out.std = {0.229, 0.224, 0.225};
  with_json(folder / "config.json", [&](const Json& json) {
    json.contains("pretrained_cfg") ? read_timm(folder, json, out)
                                    : read_transformers(folder, json, out);
  });
  const fs::path processor = folder / "preprocessor_config.json";
  if (fs::exists(processor)) {
    with_json(processor, [&](const Json& json) { read_processor(json, out); });
  }
  return out;
}

}  // namespace lockstep
