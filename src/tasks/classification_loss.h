// Computes the loss of a classifier, and which of its answers are correct.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "tasks/task.h"

#include "tasks/uses.h"

namespace lockstep {

struct ClassTargets {
  torch::Tensor labels;        // int64 [n]
  torch::Tensor other_labels;  // int64 [n], of mixed images; or undefined
  torch::Tensor weights;       // fp32 [n], of `labels`; other_labels have 1 - weight; or undefined
};

// Sums over the images the cross-entropy with label smoothing as torch computes it: the target
// distribution is 1 - smoothing at the label plus smoothing / classes everywhere (Szegedy et al.
// 2016, section 7). logits: [n, classes] of any type; the softmax is fp32. For mixed images the
// loss is the weighted mean over both labels, and the label of greater weight is the correct
// answer. Of equal logits the first counts as the greater one, as in torch.argmax.
LossParts classification_loss(const torch::Tensor& logits, const ClassTargets& targets,
                              double smoothing);

// Returns for each image, int64 [n], how many classes rank before its label; the number of classes
// if its logit is not a number. logits: fp32 [n, classes], labels: int64 [n].
torch::Tensor label_ranks(const torch::Tensor& logits, const torch::Tensor& labels);

// Returns the `most` most probable classes of each row of probabilities [n,
// classes], most probable first.
std::vector<std::vector<ClassProbability>> most_probable(const torch::Tensor& probabilities,
                                                         const std::vector<std::string>& classes,
                                                         int64_t most);

}  // namespace lockstep
