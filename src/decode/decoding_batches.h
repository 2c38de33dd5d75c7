// Divides sentences into batches for decoding, and the batches among threads.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "decode/decoder.h"

namespace lockstep {

// Calls decode(indices of sentences) for batches that together hold every sentence that is not
// empty. A batch has sentences of similar length, with at most `batch_tokens` source tokens
// including padding and </s>. The model's threads take whole batches in turn, the longest first:
// within one batch the steps are too short to share. The batches do not depend on the threads.
void decode_in_batches(const DecodingModel& model, const std::vector<std::vector<int32_t>>& sources,
                       int64_t batch_tokens,
                       const std::function<void(const std::vector<std::size_t>&)>& decode);

}  // namespace lockstep
