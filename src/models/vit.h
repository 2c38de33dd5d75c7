// Defines the Vision Transformer (Dosovitskiy et al. 2021, "An image is worth 16x16 words"): an
// image is cut into square patches; their projections, preceded by a class token, plus learned
// positions are the tokens of a pre-norm encoder. The weights have timm's names;
// patch_embed.proj.weight is stored as the matrix [width, 3 * patch * patch], pos_embed as [tokens,
// width], cls_token as [width].
//
// Initialisation is timm's: matrices (including the head's) and positions normal(0.02), biases 0,
// class token normal(1e-6), the projection of patches as in torch.nn.Conv2d. (timm truncates its
// normal at 2, which is 100 standard deviations.)
//
// Any image whose sides are multiples of the patch is accepted: for another grid than that of
// training the positions are interpolated (section 3.2), bicubically.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/image_model.h"
#include "nn/attention.h"
#include "nn/layer_norm.h"
#include "nn/linear.h"
#include "nn/linear_epilogues.h"

namespace lockstep {

// Sizes of table 1 of the paper; S and Ti are those of Touvron et al. 2021 (DeiT), table 1.
struct VitShape {
  int64_t width = 768;
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t inner = 3072;  // width inside the feed-forward blocks
  int64_t patch = 16;    // side in pixels
};
inline constexpr VitShape kVitTiny{192, 12, 3, 768, 16};
inline constexpr VitShape kVitSmall{384, 12, 6, 1536, 16};
inline constexpr VitShape kVitBase{768, 12, 12, 3072, 16};
inline constexpr VitShape kVitLarge{1024, 24, 16, 4096, 16};

struct VitBlock {
  LayerNorm norm1;
  Linear qkv, projection;
  LayerNorm norm2;
  Linear up, down;
};

class Vit : public ImageModel {
 public:
  // Reads the keys of `config` that describe() says are for ViTs; config.patch, when set, overrides
  // the shape's. Adds, in this order: cls_token, pos_embed, patch_embed.proj; blocks.N.norm1,
  // .attn.qkv, .attn.proj, .norm2, .mlp.fc1, .mlp.fc2; norm, or fc_norm with pool = "mean"; head.
  // Throws ConfigError when `size` is no multiple of the patch.
  Vit(const ImageModelConfig& config, const VitShape& shape, const ImageModelShape& images,
      Parameters& parameters);
  Vit(const Vit&) = delete;
  Vit& operator=(const Vit&) = delete;

  // Throws ConfigError for images whose sides are no multiples of the patch.
  torch::Tensor logits(const torch::Tensor& images, const ImageForward& how) const override;

  const VitShape& shape() const { return shape_; }
  const ImageModelConfig& config() const { return config_; }
  int64_t grid() const { return grid_; }  // patches per side in training

 private:
  struct Pass;  // for one batch: segments, keys

  // Returns patches, class token and positions, fp32 [n * (patches + 1), width].
  torch::Tensor embed(const torch::Tensor& images, const Pass& pass) const;
  torch::Tensor positions(int64_t height, int64_t width) const;  // fp32 [1 + height * width, d]
  // Runs both residual branches of a block, for all tokens; `next` is the norm of what follows.
  ResidualNorm run_block(std::size_t index, const ResidualNorm& x, const LayerNorm& next,
                         const Pass& pass) const;
  // Runs the last block and the norm after it for the class tokens only, since nothing else of the
  // block is read. Returns [n, width] in the compute type.
  torch::Tensor finish_class_tokens(const ResidualNorm& x, const Pass& pass) const;
  torch::Tensor finish_mean(const ResidualNorm& x, const Pass& pass) const;
  ResidualNorm finish_block(std::size_t index, const ResidualNorm& x, const torch::Tensor& mixed,
                            const LayerNorm& next, const Pass& pass) const;

  ImageModelConfig config_;
  VitShape shape_;
  int64_t grid_;
  ParameterRef class_token_, positions_;
  Linear patches_;
  std::vector<VitBlock> blocks_;
  LayerNorm norm_;
  Linear head_;
};

// Resizes the rows of a square grid, fp32 [grid * grid, d], to [height * width, d], bicubically,
// with the outer corners of the corner pixels aligned (align_corners = false), as transformers'
// interpolate_pos_encoding does.
torch::Tensor resize_grid(const torch::Tensor& rows, int64_t grid, int64_t height, int64_t width);

template <const VitShape& kShape>
std::unique_ptr<ImageModel> make_vit(const ImageModelConfig& config, const ImageModelShape& images,
                                     Parameters& parameters) {
  return std::make_unique<Vit>(config, kShape, images, parameters);
}

}  // namespace lockstep
