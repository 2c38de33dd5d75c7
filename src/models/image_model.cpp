#include "models/image_model.h"

#include "models/resnet.h"
#include "models/vit.h"

namespace lockstep {

const Catalogue<ImageModelMaker>& image_models() {
  static const Catalogue<ImageModelMaker> catalogue = [] {
    Catalogue<ImageModelMaker> c("image model");
    c.add("resnet18", make_resnet<18>, "ResNet-18 (He et al. 2016)");
    c.add("resnet34", make_resnet<34>, "ResNet-34 (He et al. 2016)");
    c.add("resnet50", make_resnet<50>, "ResNet-50 v1.5: stride in the 3 x 3 convolution");
    c.add("resnet101", make_resnet<101>, "ResNet-101 v1.5");
    c.add("resnet152", make_resnet<152>, "ResNet-152 v1.5");
    c.add("vit_ti16", make_vit<kVitTiny>, "ViT-Ti/16 (Touvron et al. 2021)");
    c.add("vit_s16", make_vit<kVitSmall>, "ViT-S/16 (Touvron et al. 2021)");
    c.add("vit_b16", make_vit<kVitBase>, "ViT-B/16 (Dosovitskiy et al. 2021)");
    c.add("vit_l16", make_vit<kVitLarge>, "ViT-L/16 (Dosovitskiy et al. 2021)");
    return c;
  }();
  return catalogue;
}

std::unique_ptr<ImageModel> make_image_model(const ImageModelConfig& config, int64_t classes,
                                             int64_t size, Parameters& parameters) {
  if (image_models().find(config.name) == nullptr) {
    throw ConfigError("model.name: {}", image_models().unknown(config.name));
  }
  return image_models().get(config.name)(config, {classes, size}, parameters);
}

}  // namespace lockstep
