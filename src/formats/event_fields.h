// The field numbers of the protocol buffers in TensorBoard's event files: event.proto,
// summary.proto, histogram.proto and tensor.proto of tensorboard/compat/proto.
#pragma once

#include <cstdint>

namespace lockstep {

inline constexpr int kFloatType = 1, kStringType = 7;  // DT_FLOAT and DT_STRING of types.proto
inline constexpr const char* kTextPlugin = "text";
inline constexpr const char* kHyperPlugin = "hparams";

namespace detail {
inline constexpr uint32_t kEventWallTime = 1, kEventStep = 2, kEventVersion = 3, kEventSummary = 5;
inline constexpr uint32_t kSummaryValue = 1;
inline constexpr uint32_t kValueTag = 1, kValueSimple = 2, kValueImage = 4, kValueHistogram = 5,
                          kValueTensor = 8, kValueMetadata = 9;
inline constexpr uint32_t kMetadataPlugin = 1, kPluginName = 1, kPluginContent = 2;
inline constexpr uint32_t kTensorType = 1, kTensorShape = 2, kTensorStrings = 8;
inline constexpr uint32_t kShapeDimension = 2, kDimensionSize = 1;
inline constexpr uint32_t kImageHeight = 1, kImageWidth = 2, kImageColors = 3, kImageFile = 4;
inline constexpr uint32_t kHistogramMin = 1, kHistogramMax = 2, kHistogramCount = 3,
                          kHistogramSum = 4, kHistogramSquares = 5, kHistogramLimits = 6,
                          kHistogramCounts = 7;
}  // namespace detail

}  // namespace lockstep
