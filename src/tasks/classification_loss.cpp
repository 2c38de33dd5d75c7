#include "tasks/classification_loss.h"

#include <torch/types.h>
#include <torch/utils.h>

namespace lockstep {

torch::Tensor label_ranks(const torch::Tensor& logits, const torch::Tensor& labels) {
  const torch::Tensor at = labels.unsqueeze(1);
  const torch::Tensor own = logits.gather(1, at);  // [n, 1]
  const torch::Tensor earlier = torch::arange(logits.size(1), at.options()).unsqueeze(0) < at;
  const torch::Tensor before = (logits > own) | ((logits == own) & earlier);
  return torch::where(own.isfinite().squeeze(1), before.sum(1), logits.size(1));
}

LossParts classification_loss(const torch::Tensor& logits, const ClassTargets& targets,
                              double smoothing) {
  const torch::Tensor log_p = torch::log_softmax(logits, 1, torch::kFloat);  // [n, classes]
  auto nll_of = [&](const torch::Tensor& labels) {
    return -log_p.gather(1, labels.unsqueeze(1)).squeeze(1);
  };
  torch::Tensor nll = nll_of(targets.labels);  // [n]
  torch::Tensor right = targets.labels;
  if (targets.weights.defined()) {
    nll = torch::lerp(nll_of(targets.other_labels), nll, targets.weights);
    right = torch::where(targets.weights >= 0.5, targets.labels, targets.other_labels);
  }
  LossParts out;
  out.nll = nll.sum();
  out.loss = out.nll;
  if (smoothing > 0) {
    const double each = smoothing / static_cast<double>(logits.size(1));
    out.loss = out.nll * (1 - smoothing) - log_p.sum() * each;
  }
  torch::NoGradGuard no_grad;
  out.nll = out.nll.detach();
  const torch::Tensor ranks = label_ranks(log_p.detach(), right);
  out.correct = ranks.eq(0).sum();
  out.top5 = ranks.lt(5).sum();
  return out;
}

std::vector<std::vector<ClassProbability>> most_probable(const torch::Tensor& probabilities,
                                                         const std::vector<std::string>& classes,
                                                         int64_t most) {
  auto [top, labels] = probabilities.topk(std::min(most, probabilities.size(1)), 1);
  top = top.to(torch::kCPU);
  labels = labels.to(torch::kCPU);
  std::vector<std::vector<ClassProbability>> out(static_cast<std::size_t>(top.size(0)));
  for (int64_t i = 0; i < top.size(0); ++i) {
    for (int64_t k = 0; k < top.size(1); ++k) {
      out[i].push_back({classes.at(static_cast<std::size_t>(labels[i][k].item<int64_t>())),
                        top[i][k].item<double>()});
    }
  }
  return out;
}

}  // namespace lockstep
