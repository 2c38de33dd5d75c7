#include "models/vit.h"

#include <cmath>

#include "base/error.h"
#include "nn/embedding.h"
#include "nn/plain.h"

namespace lockstep {
namespace {

using torch::Tensor;

// Places of dropout, numbered within a block; site 0 is for the embedded tokens.
enum BlockSite { kWeights, kProjection, kProjectionPath, kInner, kDown, kDownPath, kBlockSites };
int64_t site_of(std::size_t block, BlockSite site) {
  return 1 + static_cast<int64_t>(block) * kBlockSites + site;
}

Linear add_normal_linear(const std::string& name, int64_t out, int64_t in, Parameters& parameters) {
  Linear linear;
  linear.weight = parameters.add(name + ".weight", {out, in}, normal(0.02));
  linear.bias = parameters.add(name + ".bias", {out}, zeros());
  return linear;
}

LayerNorm add_norm(const std::string& name, int64_t width, double epsilon, Parameters& parameters) {
  LayerNorm norm;
  norm.weight = parameters.add(name + ".weight", {width}, ones());
  norm.bias = parameters.add(name + ".bias", {width}, zeros());
  norm.epsilon = epsilon;
  return norm;
}

// [n, 3, height, width] -> [n * patches, 3 * patch * patch], patches row by row.
Tensor cut_patches(const Tensor& images, int64_t patch) {
  const int64_t n = images.size(0), rows = images.size(2) / patch, columns = images.size(3) / patch;
  return images.unflatten(3, {columns, patch})
      .unflatten(2, {rows, patch})  // [n, 3, rows, patch, columns, patch]
      .permute({0, 2, 4, 1, 3, 5})
      .reshape({n * rows * columns, 3 * patch * patch});
}

}  // namespace

struct Vit::Pass {
  const ImageForward& how;
  int64_t images, tokens;  // tokens of an image
  Segments segments;
  Tensor rows;        // int64 [images * tokens], keys of dropout; undefined when nothing is dropped
  Tensor class_rows;  // int64 [images], those of the class tokens
  const Tensor* path_rows;  // int64 [images]

  Dropout dropout(int64_t site, double p, bool class_only = false) const {
    if (!rows.defined() || p == 0) return {};
    return {p, dropout_key(how.seed, how.step, site), class_only ? class_rows : rows};
  }

  // Returns dropout of a branch's elements, and of whole branches with probability `path` (Huang et
  // al. 2016, "Deep networks with stochastic depth"; kept ones are scaled by 1 / (1 - path)).
  BranchDropout branch(int64_t site, double p, double path, bool class_only) const {
    BranchDropout out = dropout(site, p, class_only);
    if (!rows.defined() || path == 0) return out;
    const Dropout whole{path, dropout_key(how.seed, how.step, site + 1), *path_rows};
    const Tensor scale = dropout_mask(whole, 1).to(at::kFloat).mul_(detail::dropout_scale(path));
    out.row_scale = scale.expand({images, class_only ? 1 : tokens}).reshape(-1);
    return out;
  }
};

Vit::Vit(const ImageModelConfig& config, const VitShape& shape, const ImageModelShape& images,
         Parameters& parameters)
    : config_(config), shape_(shape) {
  if (config_.width != ImageModelConfig().width) {
    throw ConfigError("model.width = {}: of ResNets only; a ViT's width goes by its name: {}",
                      config_.width, "vit_ti16 192, vit_s16 384, vit_b16 768, vit_l16 1024");
  }
  if (config_.patch != 0) shape_.patch = config_.patch;
  if (images.size < shape_.patch || images.size % shape_.patch != 0) {
    throw ConfigError(
        "model.patch: images of {0} pixels cannot be cut into patches of {1}; expected "
        "a multiple of {1}",
        images.size, shape_.patch);
  }
  TORCH_CHECK(shape_.width % shape_.heads == 0, "ViT: width ", shape_.width, " in ", shape_.heads,
              " heads");
  grid_ = images.size / shape_.patch;
  const int64_t d = shape_.width, inputs = 3 * shape_.patch * shape_.patch;
  class_token_ = parameters.add("cls_token", {d}, normal(1e-6));
  positions_ = parameters.add("pos_embed", {1 + grid_ * grid_, d}, normal(0.02));
  const double bound = 1 / std::sqrt(static_cast<double>(inputs));
  patches_.weight = parameters.add("patch_embed.proj.weight", {d, inputs}, uniform(bound));
  patches_.bias = parameters.add("patch_embed.proj.bias", {d}, uniform(bound));
  const double epsilon = config_.norm_epsilon;
  for (int64_t i = 0; i < shape_.layers; ++i) {
    const std::string name = fmt::format("blocks.{}.", i);
    VitBlock block;
    block.norm1 = add_norm(name + "norm1", d, epsilon, parameters);
    block.qkv = add_normal_linear(name + "attn.qkv", 3 * d, d, parameters);
    block.projection = add_normal_linear(name + "attn.proj", d, d, parameters);
    block.norm2 = add_norm(name + "norm2", d, epsilon, parameters);
    block.up = add_normal_linear(name + "mlp.fc1", shape_.inner, d, parameters);
    block.down = add_normal_linear(name + "mlp.fc2", d, shape_.inner, parameters);
    blocks_.push_back(std::move(block));
  }
  norm_ = add_norm(config_.pool == "mean" ? "fc_norm" : "norm", d, epsilon, parameters);
  head_ = add_normal_linear("head", images.classes, d, parameters);
}

Tensor Vit::logits(const Tensor& images, const ImageForward& how) const {
  TORCH_CHECK(images.dim() == 4 && images.size(1) == 3, "ViT: images are ", images.sizes(),
              ", expected [n, 3, height, width]");
  if (images.size(2) % shape_.patch != 0 || images.size(3) % shape_.patch != 0 ||
      images.size(2) == 0 || images.size(3) == 0) {
    throw ConfigError("images of {} x {} pixels cannot be cut into patches of {}", images.size(3),
                      images.size(2), shape_.patch);
  }
  const int64_t n = images.size(0);
  const int64_t tokens = 1 + images.size(2) / shape_.patch * (images.size(3) / shape_.patch);
  const std::vector<int32_t> lengths(static_cast<std::size_t>(n), static_cast<int32_t>(tokens));
  Pass pass{how, n, tokens, make_segments(lengths, images.device()), {}, {}, how.rows};
  if (how.training &&
      (config_.dropout > 0 || config_.attention_dropout > 0 || config_.drop_path > 0)) {
    TORCH_CHECK(how.rows != nullptr && how.rows->numel() == n, "ViT: dropout needs a key an image");
    pass.class_rows = *how.rows * (int64_t{1} << 16);
    const Tensor token = torch::arange(tokens, how.rows->options());
    pass.rows = (pass.class_rows.unsqueeze(1) + token).flatten();
  }
  const Tensor stream = embed(images, pass);
  ResidualNorm x{stream, layer_norm(stream, blocks_.front().norm1, how.numerics)};
  for (std::size_t i = 0; i + 1 < blocks_.size(); ++i) {
    x = run_block(i, x, blocks_[i + 1].norm1, pass);
  }
  const Tensor pooled =
      config_.pool == "mean" ? finish_mean(x, pass) : finish_class_tokens(x, pass);
  return linear(pooled, head_, how.numerics);
}

Tensor Vit::embed(const Tensor& images, const Pass& pass) const {
  const int64_t patch = shape_.patch, d = shape_.width, n = pass.images;
  const Tensor patches =
      linear(cut_patches(images, patch), patches_, pass.how.numerics).to(at::kFloat);
  const Tensor where = positions(images.size(2) / patch, images.size(3) / patch);
  const Tensor first = class_token_->value + where.select(0, 0);  // [d]
  const Tensor others = patches.view({n, -1, d}) + where.narrow(0, 1, where.size(0) - 1);
  const Tensor stream = torch::cat({first.expand({n, 1, d}), others}, 1).view({-1, d});
  return embedding_dropout(stream, pass.dropout(0, config_.dropout), pass.how.numerics);
}

Tensor Vit::positions(int64_t height, int64_t width) const {
  const Tensor& all = positions_->value;
  if (height == grid_ && width == grid_) return all;
  return torch::cat(
      {all.narrow(0, 0, 1), resize_grid(all.narrow(0, 1, grid_ * grid_), grid_, height, width)});
}

ResidualNorm Vit::run_block(std::size_t index, const ResidualNorm& x, const LayerNorm& next,
                            const Pass& pass) const {
  const VitBlock& block = blocks_[index];
  AttentionOptions options;
  options.heads = shape_.heads;
  options.dropout = pass.dropout(site_of(index, kWeights), config_.attention_dropout);
  const Tensor qkv = linear(x.normed, block.qkv, pass.how.numerics);
  const Tensor mixed = self_attention(qkv, pass.segments, options, pass.how.numerics);
  return finish_block(index, x, mixed, next, pass);
}

ResidualNorm Vit::finish_block(std::size_t index, const ResidualNorm& x, const Tensor& mixed,
                               const LayerNorm& next, const Pass& pass) const {
  const VitBlock& block = blocks_[index];
  const Numerics& numerics = pass.how.numerics;
  const bool class_only = mixed.size(0) != pass.images * pass.tokens;
  // Deeper blocks are dropped more often (section 3 of the paper on stochastic depth).
  const double depth = blocks_.size() == 1
                           ? 0
                           : static_cast<double>(index) / static_cast<double>(blocks_.size() - 1);
  const double path = config_.drop_path * depth;
  auto branch = [&](BlockSite site) {
    return pass.branch(site_of(index, site), config_.dropout, path, class_only);
  };
  const ResidualNorm y = linear_residual_norm(x.stream, mixed, block.projection,
                                              branch(kProjection), block.norm2, numerics);
  const Tensor inner =
      linear_gelu(y.normed, block.up,
                  pass.dropout(site_of(index, kInner), config_.dropout, class_only), numerics);
  return linear_residual_norm(y.stream, inner, block.down, branch(kDown), next, numerics);
}

Tensor Vit::finish_class_tokens(const ResidualNorm& x, const Pass& pass) const {
  const std::size_t last = blocks_.size() - 1;
  const VitBlock& block = blocks_[last];
  AttentionOptions options;
  options.heads = shape_.heads;
  options.dropout = pass.dropout(site_of(last, kWeights), config_.attention_dropout, true);
  const Tensor qkv = linear(x.normed, block.qkv, pass.how.numerics);
  const Tensor mixed = first_token_attention(qkv, pass.segments, options, pass.how.numerics);
  const Tensor stream = x.stream.view({pass.images, pass.tokens, shape_.width}).select(1, 0);
  return finish_block(last, {stream, {}}, mixed, norm_, pass).normed;
}

Tensor Vit::finish_mean(const ResidualNorm& x, const Pass& pass) const {
  // The norm comes after the mean, so that of the tokens is not used.
  const Tensor stream = run_block(blocks_.size() - 1, x, norm_, pass).stream;
  const Tensor mean =
      stream.view({pass.images, pass.tokens, shape_.width}).narrow(1, 1, pass.tokens - 1).mean(1);
  return layer_norm(mean, norm_, pass.how.numerics);
}

Tensor resize_grid(const Tensor& rows, int64_t grid, int64_t height, int64_t width) {
  const Tensor picture = rows.view({1, grid, grid, -1}).permute({0, 3, 1, 2});  // [1, d, h, w]
  const Tensor resized = at::upsample_bicubic2d(picture, {height, width}, false);
  return resized.permute({0, 2, 3, 1}).reshape({height * width, -1});
}

}  // namespace lockstep
