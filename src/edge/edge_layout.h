// Visits the weights of a model in the order in which model.edge has them: what is written and what
// is read are one list.
#pragma once

#include "decode/packed_transformer.h"
#include "edge/edge_file.h"

namespace lockstep {

inline constexpr std::string_view kEdgeMagic = "lockstep-edge ";
inline constexpr int64_t kEdgeHeaderBytes = 16384;  // the weights begin here
inline constexpr int64_t kEdgeAlignment = 64;       // every array begins at a multiple

// Rows of tables that a side has for itself; 0: none.
struct EdgeRows {
  int64_t decoder, encoder;
};

// Calls visitor.norm(PackedNorm&) and visitor.linear(PackedLinear&, outputs, inputs).
template <class Model, class Visitor>
void visit_edge_weights(Model& model, const DecodingShape& shape, const EdgeRows& rows,
                        Visitor& visitor) {
  const int64_t d = shape.d_model, f = shape.feed_forward;
  auto feed_forward = [&](auto& block) {
    visitor.norm(block.norm);
    visitor.linear(block.up, f, d);
    visitor.linear(block.down, d, f);
  };
  for (auto& layer : model.encoder) {
    visitor.norm(layer.self.norm);
    visitor.linear(layer.self.in, 3 * d, d);
    visitor.linear(layer.self.out, d, d);
    feed_forward(layer.feed_forward);
  }
  if (shape.pre_norm) visitor.norm(model.encoder_norm);
  for (auto& layer : model.decoder) {
    visitor.norm(layer.self.norm);
    visitor.linear(layer.self.in, 3 * d, d);
    visitor.linear(layer.self.out, d, d);
    visitor.norm(layer.cross.norm);
    visitor.linear(layer.cross.in, d, d);
    visitor.linear(layer.cross.memory, 2 * d, d);
    visitor.linear(layer.cross.out, d, d);
    feed_forward(layer.feed_forward);
  }
  if (shape.pre_norm) visitor.norm(model.decoder_norm);
  visitor.linear(model.output, shape.pieces, d);
  if (rows.decoder > 0) visitor.linear(model.decoder_rows, rows.decoder, d);
  if (rows.encoder > 0) visitor.linear(model.encoder_rows, rows.encoder, d);
}

// Calls f.CHECK(key, member, ...) for every key of the header, in the order of the file.
template <class Header, class F>
void visit_edge_header(Header& h, F& f) {
  f.choice("precision", h.precision, {"fp32", "bf16", "int8"});
  f.size("d_model", h.d_model, 2);
  f.size("heads", h.heads, 1);
  f.size("encoder_layers", h.encoder_layers, 1);
  f.size("decoder_layers", h.decoder_layers, 1);
  f.size("feed_forward", h.feed_forward, 1);
  f.size("pieces", h.pieces, 4);
  f.choice("norm", h.norm, {"pre", "post"});
  f.number("norm_epsilon", h.norm_epsilon);
  f.choice("activation", h.activation, {"relu", "gelu", "silu"});
  f.choice("positions", h.positions, {"interleaved", "halves", "paper_halves"});
  f.size("first_position", h.first_position, 0);
  f.choice("embeddings", h.embeddings, {"scaled", "plain"});
  f.size("decoder_rows", h.decoder_rows, 0);
  f.size("encoder_rows", h.encoder_rows, 0);
  f.choice("start", h.start, {"bos", "zero"});
  f.choice("vocabulary", h.vocabulary, {"own", "marian", "m2m100", "nllb"});
  f.id("pad", h.special.pad);
  f.id("eos", h.special.eos);
  f.id("bos", h.special.bos);
  f.id("unk", h.special.unk);
  f.ids("source_prefix", h.special.source_prefix);
  f.ids("primer", h.special.primer);
  f.ids("never", h.special.never);
  f.flag("ends_at_limit", h.special.ends_at_limit);
  f.flag("renormalizes", h.special.renormalizes);
  for (const char* key : {"beam_size", "length_penalty", "max_length_factor", "max_length_extra",
                          "min_length", "batch_tokens", "stop", "length_norm"}) {
    f.decoding(key, h.decoding);
  }
}

}  // namespace lockstep
