#include "nn/batch_norm.h"

#include <torch/autograd.h>
#include <torch/custom_class.h>

#include "base/error.h"

namespace lockstep {
namespace detail {

void check_values_a_channel(int64_t values, const BatchNorm& norm, const torch::Tensor& x) {
  if (values > 1) return;
  ConfigError error("{}: a batch of {} image(s) of {} x {} pixels has one value a channel",
                    norm.weight->name, x.size(0), x.size(2), x.size(3));
  error.set_cause("batch norm in training normalises over the batch: of one value nothing is left");
  error.set_advice("more images a rank, larger images, or statistics synchronised over the ranks");
  throw error;
}

}  // namespace detail

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

using SumOverRanks = std::function<void(torch::Tensor&)>;

struct KeptSum : torch::CustomClassHolder {
  explicit KeptSum(SumOverRanks sum) : sum(std::move(sum)) {}
  SumOverRanks sum;
};

// The sum of a tensor over the ranks. Each rank's own tensor is in every rank's result, so its
// gradient is the sum of theirs.
struct RankSum : Function<RankSum> {
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& own,
                               const SumOverRanks& sum) {
    ctx->saved_data["sum"] = c10::IValue::make_capsule(c10::make_intrusive<KeptSum>(sum));
    torch::Tensor all = own.clone();
    sum(all);
    return all;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto kept = ctx->saved_data["sum"].toCapsule();
    torch::Tensor all = grads[0].clone();
    static_cast<const KeptSum&>(*kept).sum(all);
    return {all, {}};
  }
};

torch::Tensor a_channel(const torch::Tensor& t) { return t.view({1, -1, 1, 1}); }

// Normalises with statistics of all ranks' images: sums this rank's count, sums and sums of squares
// in fp64 (precise enough for the difference of mean square and squared mean) over the ranks.
torch::Tensor synchronised(const torch::Tensor& x, const BatchNorm& norm,
                           const BatchNormMode& mode) {
  const torch::Tensor wide = x.to(at::kDouble);
  const int64_t channels = x.size(1);
  const torch::Tensor own = torch::cat({wide.sum({0, 2, 3}), (wide * wide).sum({0, 2, 3}),
                                        torch::full({1}, x.numel() / channels, wide.options())});
  const torch::Tensor all = RankSum::apply(own, mode.sum_over_ranks);
  const double count = all[2 * channels].item<double>();
  detail::check_values_a_channel(static_cast<int64_t>(count), norm, x);
  const torch::Tensor mean = all.narrow(0, 0, channels) / count;
  const torch::Tensor variance = all.narrow(0, channels, channels) / count - mean * mean;
  {
    torch::NoGradGuard no_grad;
    norm.running_mean->value.lerp_(mean.to(at::kFloat), norm.momentum);
    norm.running_variance->value.lerp_((variance * (count / (count - 1))).to(at::kFloat),
                                       norm.momentum);
  }
  const torch::Tensor normal =
      (wide - a_channel(mean)) * a_channel(torch::rsqrt(variance + norm.epsilon));
  return normal.to(at::kFloat) * a_channel(norm.weight->value) + a_channel(norm.bias->value);
}

}  // namespace

BatchNorm add_batch_norm(const std::string& name, int64_t channels, bool zero_weight,
                         Parameters& parameters) {
  BatchNorm norm;
  norm.weight = parameters.add(name + ".weight", {channels}, zero_weight ? zeros() : ones());
  norm.bias = parameters.add(name + ".bias", {channels}, zeros());
  norm.running_mean = parameters.add_buffer(name + ".running_mean", {channels}, 0);
  norm.running_variance = parameters.add_buffer(name + ".running_var", {channels}, 1);
  return norm;
}

torch::Tensor plain_batch_norm(const torch::Tensor& x, const BatchNorm& norm,
                               const BatchNormMode& mode) {
  TORCH_CHECK(x.dim() == 4 && x.size(1) == norm.weight->numel, "batch norm ", norm.weight->name,
              ": x is ", x.sizes(), ", expected [n, ", norm.weight->numel, ", height, width]");
  if (mode.training && mode.sum_over_ranks) return synchronised(x, norm, mode);
  if (mode.training) detail::check_values_a_channel(x.numel() / x.size(1), norm, x);
  return at::batch_norm(x.to(at::kFloat), norm.weight->value, norm.bias->value,
                        norm.running_mean->value, norm.running_variance->value, mode.training,
                        norm.momentum, norm.epsilon, /*cudnn_enabled=*/true);
}

}  // namespace lockstep
