// Replaces the pieces in SentencePiece's model file, which is a protocol buffer message
// (sentencepiece_model.proto).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// Returns `model` with other pieces: <pad>, </s>, <s>, <unk>, then `pieces`, of which the nth has
// score -n. Everything else stays, except the vocabulary size in its description. REQUIRES:
// SentencePiece has parsed `model`.
std::string with_pieces(std::string_view model, const std::vector<std::string>& pieces);

}  // namespace lockstep
