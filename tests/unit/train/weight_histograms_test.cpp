#include "train/parts/weight_histograms.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <map>

namespace lockstep {
namespace {

Parameters::Initializer all(float value) {
  return [value](torch::Tensor& t, at::Generator&) { t.fill_(value); };
}

TEST(WeightHistograms, GroupWeightsByLayerAndScaleGradients) {
  Parameters parameters;
  parameters.add("encoder.0.weight", {1000, 700}, all(0.5));  // more than one piece
  parameters.add("encoder.0.bias", {3}, all(-1));
  parameters.add("pos_embed", {5}, all(2));
  parameters.allocate(torch::kCPU, at::kFloat, 1);
  torch::Tensor(parameters.gradients()).fill_(8);
  WeightHistograms histograms(parameters, 10);
  EXPECT_TRUE(histograms.is_due(20));
  EXPECT_FALSE(histograms.is_due(25));
  histograms.take_gradients(0.25);
  torch::Tensor(parameters.gradients()).zero_();  // as the optimizer leaves them

  std::map<std::string, Histogram> found;
  for (NamedHistogram& h : histograms.take()) found[h.tag] = h.values;
  ASSERT_EQ(found.size(), 4u);
  const Histogram& layer = found.at("weights/encoder.0");
  EXPECT_EQ(layer.count, 700003);
  EXPECT_EQ(layer.min, -1);
  EXPECT_EQ(layer.max, 0.5);
  EXPECT_EQ(layer.sum, 350000 - 3);
  EXPECT_EQ(found.at("weights/pos_embed").sum, 10);
  EXPECT_EQ(found.at("gradients/encoder.0").count, 700003);
  EXPECT_EQ(found.at("gradients/encoder.0").max, 2);
  EXPECT_EQ(found.at("gradients/pos_embed").min, 2);

  EXPECT_EQ(histograms.take().size(), 2u) << "gradients are shown once";
}

}  // namespace
}  // namespace lockstep
