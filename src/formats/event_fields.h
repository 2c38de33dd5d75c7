// Field numbers of the protocol buffers in TensorBoard's event files: event.proto, summary.proto,
// histogram.proto and tensor.proto of tensorboard/compat/proto.
#pragma once

namespace lockstep {

inline constexpr int kFloatType = 1, kStringType = 7;  // DT_FLOAT, DT_STRING of types.proto
inline constexpr const char* kTextPlugin = "text";
inline constexpr const char* kHyperPlugin = "hparams";

namespace detail {
inline constexpr int kEventWallTime = 1, kEventStep = 2, kEventVersion = 3, kEventSummary = 5;
inline constexpr int kSummaryValue = 1;
inline constexpr int kValueTag = 1, kValueSimple = 2, kValueImage = 4, kValueHistogram = 5,
                     kValueTensor = 8, kValueMetadata = 9;
inline constexpr int kMetadataPlugin = 1, kPluginName = 1, kPluginContent = 2;
inline constexpr int kTensorType = 1, kTensorShape = 2, kTensorStrings = 8;
inline constexpr int kShapeDimension = 2, kDimensionSize = 1;
inline constexpr int kImageHeight = 1, kImageWidth = 2, kImageColors = 3, kImageFile = 4;
inline constexpr int kHistogramMin = 1, kHistogramMax = 2, kHistogramCount = 3, kHistogramSum = 4,
                     kHistogramSquares = 5, kHistogramLimits = 6, kHistogramCounts = 7;
}  // namespace detail

}  // namespace lockstep
