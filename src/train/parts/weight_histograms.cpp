#include "train/parts/weight_histograms.h"

#include <ATen/Parallel.h>
#include <torch/utils.h>

#include <algorithm>

namespace lockstep {

namespace {

constexpr int64_t kPiece = 1 << 19;  // numbers: about a millisecond

std::string group_of(const std::string& name) { return name.substr(0, name.rfind('.')); }

}  // namespace

WeightHistograms::WeightHistograms(const Parameters& parameters, int64_t every)
    : parameters_(parameters), every_(every) {
  for (const ParameterRef& p : parameters.list()) {
    const std::string name = group_of(p->name);
    const auto found = std::find(groups_.begin(), groups_.end(), name);
    const auto group = static_cast<std::size_t>(found - groups_.begin());
    if (found == groups_.end()) groups_.push_back(name);
    for (int64_t at = 0; at < p->numel; at += kPiece) {
      pieces_.push_back({group, p->offset + at, p->offset + std::min(p->numel, at + kPiece)});
    }
  }
}

std::vector<Histogram> WeightHistograms::count(const torch::Tensor& flat, double factor) const {
  torch::NoGradGuard no_grad;
  const torch::Tensor host = flat.detach().to(torch::kCPU);
  const float* numbers = host.const_data_ptr<float>();
  std::vector<HistogramCounter> parts(pieces_.size());
  at::parallel_for(0, std::ssize(pieces_), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Piece& piece = pieces_[i];
      parts[i].add({numbers + piece.begin, numbers + piece.end}, static_cast<float>(factor));
    }
  });
  std::vector<HistogramCounter> groups(groups_.size());
  for (std::size_t i = 0; i < pieces_.size(); ++i) groups[pieces_[i].group].add(parts[i]);
  std::vector<Histogram> out;
  for (const HistogramCounter& group : groups) out.push_back(group.result());
  return out;
}

void WeightHistograms::take_gradients(double factor) {
  gradients_ = count(parameters_.gradients(), factor);
}

std::vector<NamedHistogram> WeightHistograms::take() {
  std::vector<NamedHistogram> out;
  std::vector<Histogram> weights = count(parameters_.values(), 1);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    out.push_back({"weights/" + groups_[g], std::move(weights[g])});
    if (!gradients_.empty()) {
      out.push_back({"gradients/" + groups_[g], std::move(gradients_[g])});
    }
  }
  gradients_.clear();
  return out;
}

}  // namespace lockstep
