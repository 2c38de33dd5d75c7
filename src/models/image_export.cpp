#include "models/image_export.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "formats/tensor_file.h"
#include "models/vit.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using torch::Tensor;

WeightWriter collect(const Parameters& parameters, const ImageExport& what) {
  WeightWriter out(what.precision);
  for (const WeightPlace& place : weight_places(what.flavour, parameters)) {
    const OwnTensor own = own_tensor(parameters, place.ours);
    out.add(place.theirs, own.value.narrow(0, place.begin, place.rows), place.shape);
    if (place.theirs.ends_with("running_var")) {
      out.add_count(place.theirs.substr(0, place.theirs.size() - 11) + "num_batches_tracked");
    }
  }
  return out;
}

struct ResNetShape {
  std::vector<int64_t> depths, widths;  // of the four stages
  int64_t stem_width;
  bool bottleneck, imagenet_stem;
};
ResNetShape resnet_shape(const Parameters& parameters) {
  const std::vector<int64_t>& stem = parameters.find("conv1.weight")->shape;
  ResNetShape out{
      {}, {}, stem[0], parameters.find("layer1.0.conv3.weight") != nullptr, stem[3] == 7};
  for (int stage = 1; stage <= 4; ++stage) {
    int64_t depth = 0;
    auto norm = [&](int64_t block) {
      return parameters.find(
          fmt::format("layer{}.{}.bn{}.weight", stage, block, out.bottleneck ? 3 : 2));
    };
    while (norm(depth) != nullptr) ++depth;
    out.depths.push_back(depth);
    out.widths.push_back(norm(0)->shape[0]);
  }
  return out;
}

int64_t resnet_depth(const ResNetShape& shape) {  // layers with weights
  int64_t blocks = 0;
  for (int64_t depth : shape.depths) blocks += depth;
  return 2 + blocks * (shape.bottleneck ? 3 : 2);
}

const char* torch_type(const ImageExport& what) {
  return what.precision == "bf16" ? "bfloat16" : "float32";
}

Json hugging_face_config(const ImageModel& model, const Parameters& parameters,
                         const ImageExport& what) {
  Json json;
  if (const auto* vit = dynamic_cast<const Vit*>(&model)) {
    const VitShape& shape = vit->shape();
    json = {{"architectures", {"ViTForImageClassification"}},
            {"model_type", "vit"},
            {"hidden_size", shape.width},
            {"num_hidden_layers", shape.layers},
            {"num_attention_heads", shape.heads},
            {"intermediate_size", shape.inner},
            {"hidden_act", "gelu"},
            {"hidden_dropout_prob", vit->config().dropout},
            {"attention_probs_dropout_prob", vit->config().attention_dropout},
            {"layer_norm_eps", vit->config().norm_epsilon},
            {"image_size", vit->grid() * shape.patch},
            {"patch_size", shape.patch},
            {"qkv_bias", true}};
  } else {
    const ResNetShape shape = resnet_shape(parameters);
    json = {{"architectures", {"ResNetForImageClassification"}},
            {"model_type", "resnet"},
            {"depths", shape.depths},
            {"hidden_sizes", shape.widths},
            {"layer_type", shape.bottleneck ? "bottleneck" : "basic"},
            {"embedding_size", shape.stem_width},
            {"hidden_act", "relu"},
            {"downsample_in_first_stage", false},
            {"downsample_in_bottleneck", false}};
  }
  json["num_channels"] = 3;
  json["torch_dtype"] = torch_type(what);
  for (std::size_t i = 0; i < what.classes.size(); ++i) {
    json["id2label"][std::to_string(i)] = what.classes[i];
    json["label2id"][what.classes[i]] = i;
  }
  return json;
}

// The processor that does what evaluation does: shorter side, centre crop, normalisation.
Json preprocessor_config(const ImageExport& what) {
  return {{"image_processor_type", "BitImageProcessor"},
          {"do_resize", what.resize > 0},
          {"size", {{"shortest_edge", what.resize > 0 ? what.resize : what.size}}},
          {"resample", what.interpolation == "bicubic" ? 3 : 2},  // Pillow's numbers
          {"do_center_crop", true},
          {"crop_size", {{"height", what.size}, {"width", what.size}}},
          {"do_rescale", true},
          {"rescale_factor", 1.0 / 255},
          {"do_normalize", true},
          {"do_convert_rgb", true},
          {"image_mean", what.mean},
          {"image_std", what.std}};
}

// Written like timm's own files on Hugging Face's hub. torchvision has none; for it the file says
// what lockstep needs to use the model (models/classifier_folder.h).
Json timm_config(const ImageModel& model, const Parameters& parameters, const ImageExport& what) {
  Json json;
  const auto* vit = dynamic_cast<const Vit*>(&model);
  if (vit != nullptr) {
    const VitShape& shape = vit->shape();
    const std::string size = shape.width <= 192   ? "tiny"
                             : shape.width <= 384 ? "small"
                             : shape.width <= 768 ? "base"
                                                  : "large";
    json["architecture"] = fmt::format("vit_{}_patch16_224", size);
    json["model_args"] = {
        {"img_size", vit->grid() * shape.patch},
        {"patch_size", shape.patch},
        {"embed_dim", shape.width},
        {"depth", shape.layers},
        {"num_heads", shape.heads},
        {"mlp_ratio", static_cast<double>(shape.inner) / static_cast<double>(shape.width)}};
    json["global_pool"] = vit->config().pool == "mean" ? "avg" : "token";
  } else {
    const ResNetShape shape = resnet_shape(parameters);
    json["architecture"] = fmt::format("resnet{}", resnet_depth(shape));
    if (!shape.imagenet_stem) json["stem"] = "cifar";  // this and the next for torchvision only
    if (shape.stem_width != 64) json["width"] = shape.stem_width;
    json["global_pool"] = "avg";
  }
  const double crop =
      what.resize > 0 ? static_cast<double>(what.size) / static_cast<double>(what.resize) : 1.0;
  json["num_classes"] = what.classes.size();
  json["label_names"] = what.classes;
  json["pretrained_cfg"] = {{"input_size", {3, what.size, what.size}},
                            {"interpolation", what.interpolation},
                            {"crop_pct", crop},
                            {"crop_mode", "center"},
                            {"mean", what.mean},
                            {"std", what.std},
                            {"num_classes", what.classes.size()},
                            {"first_conv", vit != nullptr ? "patch_embed.proj" : "conv1"},
                            {"classifier", vit != nullptr ? "head" : "fc"}};
  return json;
}

void check_exportable(const ImageModel& model, const Parameters& parameters,
                      const ImageExport& what) {
  if (const auto* vit = dynamic_cast<const Vit*>(&model)) {
    if (vit->config().pool != "class" && what.flavour != WeightFlavour::kTimm) {
      throw ConfigError("model.pool = {}: the ViTs of {} read the class token; expected timm",
                        vit->config().pool, flavour_name(what.flavour));
    }
    if (vit->config().norm_epsilon != 1e-6 && what.flavour != WeightFlavour::kHuggingFace) {
      throw ConfigError(
          "model.norm_epsilon = {:g}: the ViTs of {} have 1e-06; expected huggingface",
          vit->config().norm_epsilon, flavour_name(what.flavour));
    }
    return;
  }
  const ResNetShape shape = resnet_shape(parameters);
  if (shape.stem_width != 64 && what.flavour == WeightFlavour::kTimm) {
    throw ConfigError(
        "model.width = {}: the ResNets of timm begin with 64 channels; expected huggingface or "
        "torchvision",
        shape.stem_width);
  }
  if (!shape.imagenet_stem && what.flavour != WeightFlavour::kTorchvision) {
    throw ConfigError(
        "model.stem = cifar: the ResNets of {} begin with a 7 x 7 convolution and a "
        "pool; expected torchvision",
        flavour_name(what.flavour));
  }
}

}  // namespace

int64_t write_image_model(const fs::path& folder, const ImageModel& model,
                          const Parameters& parameters, const ImageExport& what) {
  torch::NoGradGuard no_grad;
  check_exportable(model, parameters, what);
  make_model_folder(folder);
  const WeightWriter weights = collect(parameters, what);
  weights.write(folder / "model.safetensors");
  if (what.flavour == WeightFlavour::kHuggingFace) {
    write_file(folder / "preprocessor_config.json", preprocessor_config(what).dump(2) + "\n");
    write_file(folder / "config.json", hugging_face_config(model, parameters, what).dump(2) + "\n");
  }
  if (what.flavour != WeightFlavour::kHuggingFace) {
    write_file(folder / "config.json", timm_config(model, parameters, what).dump(2) + "\n");
  }
  return weights.bytes();
}

}  // namespace lockstep
