#include "models/packing.h"

#include "models/decoder.h"
#include "nn/embedding.h"
#include "nn/fused.h"

namespace lockstep {
namespace {

using torch::Tensor;

PackedLinear packed(const Linear& linear, WeightFormat format) {
  const Tensor weight = linear.weight->value.detach();
  const Tensor bias = linear.bias ? linear.bias->value.detach() : Tensor();
  return {{detail::pointer<float>(weight), detail::pointer<float>(bias), weight.size(0),
           weight.size(1)},
          format,
          torch_threads()};
}

PackedNorm packed(const LayerNorm& norm) {
  if (norm.weight == nullptr) return {};
  return {detail::pointer<float>(norm.weight->value), detail::pointer<float>(norm.bias->value)};
}

DecodingShape shape_of(const Transformer& model, const DecodingStart& start) {
  const TransformerConfig& config = model.config();
  DecodingShape shape;
  shape.d_model = config.d_model;
  shape.heads = config.heads;
  shape.encoder_layers = config.encoder_layers;
  shape.decoder_layers = config.decoder_layers;
  shape.feed_forward = config.feed_forward;
  shape.pieces = model.pieces();
  shape.pre_norm = config.pre_norm();
  shape.activation = config.activation;
  shape.norm_epsilon = config.norm_epsilon;
  shape.embedding_scale = static_cast<float>(model.embedding_scale());
  shape.primer = start.tokens(config);
  return shape;
}

// Returns the output's bias for the ids that are pieces; undefined where there is none.
Tensor packed_bias(const Transformer& model, const std::vector<int32_t>& suppressed) {
  constexpr float kNeverBias = -1e30f;
  Tensor bias = model.output_bias();
  if (bias.defined()) bias = bias.narrow(0, 0, model.pieces());
  if (suppressed.empty()) return bias;
  bias = bias.defined() ? bias.clone() : torch::zeros({model.pieces()});
  for (int32_t id : suppressed) bias[id] = kNeverBias;
  return bias;
}

}  // namespace

WeightFormat weight_format(const std::string& precision) {
  if (precision == "int8") return WeightFormat::kInt8;
  return precision == "bf16" ? WeightFormat::kBf16 : WeightFormat::kFp32;
}

PackedTransformer pack_transformer(const Transformer& model, WeightFormat format,
                                   const DecodingStart& start) {
  auto pack = [&](const Linear& linear) { return packed(linear, format); };
  PackedTransformer out;
  out.shape = shape_of(model, start);
  for (const auto& [self, inner] : model.encoder()) {
    out.encoder.push_back({{packed(self.norm), pack(self.qkv), pack(self.out), {}},
                           {},
                           {packed(inner.norm), pack(inner.up), pack(inner.down)}});
  }
  for (const auto& [self, cross, inner] : model.decoder()) {
    out.decoder.push_back(
        {{packed(self.norm), pack(self.qkv), pack(self.out), {}},
         {packed(cross.norm), pack(cross.query), pack(cross.out), pack(cross.memory)},
         {packed(inner.norm), pack(inner.up), pack(inner.down)}});
  }
  out.encoder_norm = packed(model.encoder_norm());
  out.decoder_norm = packed(model.decoder_norm());
  out.embedding = detail::pointer<float>(model.table().value);
  out.source_embedding = detail::pointer<float>(model.source_table().value);
  const Tensor& table = model.output_table().value;
  const Tensor bias = packed_bias(model, start.suppressed);  // copied
  out.output = {
      {detail::pointer<float>(table), detail::pointer<float>(bias), model.pieces(), table.size(1)},
      format,
      torch_threads()};
  out.positions = [&model](int64_t count) {
    const Tensor rows = model.positions(count);
    return PositionRows(detail::pointer<float>(rows), [rows](const float*) {});
  };
  return out;
}

PackedLinear pack_table(const Parameter& table, WeightFormat format) {
  const Tensor rows = table.value.detach();
  return {
      {detail::pointer<float>(rows), nullptr, rows.size(0), rows.size(1)}, format, torch_threads()};
}

}  // namespace lockstep
