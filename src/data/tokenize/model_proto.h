// SentencePiece's model file is a protocol-buffer message (sentencepiece_model.proto); here its
// pieces are replaced.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// `model` with other pieces: <pad>, </s>, <s>, <unk>, then `pieces`, the nth with score -n.
// Everything else stays, but for the size of the vocabulary in its description.
// REQUIRES: a model that SentencePiece has read.
std::string with_pieces(std::string_view model, const std::vector<std::string>& pieces);

}  // namespace lockstep
