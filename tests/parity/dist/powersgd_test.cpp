// Our PowerSGD against torch.distributed's, from the same factor on.
#include <gtest/gtest.h>

#include "base/file.h"
#include "dist/gradients/comm_hooks.h"
#include "formats/tensor_file.h"
#include "support/python.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

constexpr int64_t kSteps = 6, kRows = 24, kColumns = 36, kRank = 3;

torch::Tensor gradients_of(int rank) {  // [steps, rows, columns]
  torch::manual_seed(7 + static_cast<uint64_t>(rank));
  return torch::randn({kSteps, kRows, kColumns});
}

TensorEntry entry(const std::string& name, const torch::Tensor& t) {
  return {name,
          DType::kF32,
          t.sizes().vec(),
          {static_cast<const std::byte*>(t.const_data_ptr()), t.nbytes()}};
}

TEST(PowerSgdParity, GivesWhatTorchsHookGives) {
  if (!python_has("torch") || !python_has("safetensors"))
    GTEST_SKIP() << "no torch and safetensors for Python";
  TemporaryFolder folder;
  const fs::path in = folder.path() / "in.safetensors", out = folder.path() / "out.safetensors";
  const fs::path ours = folder.path() / "ours.safetensors";
  expect_all_well(run_ranks(2, [&](World& world) {
    torch::manual_seed(1);
    torch::Tensor q = torch::randn({kColumns, kRank});
    torch::Tensor first = gradients_of(0), second = gradients_of(1);
    if (world.is_leader()) {
      write_tensor_file(in, {entry("rank0", first), entry("rank1", second), entry("q", q)});
    }
    CommHookConfig config{.hook = "powersgd"};
    config.powersgd.rank = kRank;
    config.powersgd.start_step = 0;
    config.powersgd.min_compression = 1;
    auto hook = make_comm_hook(world, config, {{0, kRows, kColumns}});
    for (HookArray& a : hook->state()) {
      if (a.name == "powersgd.counters") a.data[1] = 1;
      if (a.name == "powersgd.q") a.data.copy_(q.view({-1}));
    }
    hook->restored();
    torch::Tensor means = (world.rank() == 0 ? first : second).clone();
    for (int64_t step = 0; step < kSteps; ++step) {
      hook->start({0, means[step].view({-1}), 0, 5.0})();
    }
    means.div_(2);
    if (world.is_leader()) write_tensor_file(ours, {entry("mean", means)});
  }));
  PythonResult result =
      run_parity_script("powersgd_hook.py", fmt::format("'{}' '{}'", in.string(), out.string()));
  ASSERT_EQ(result.status, 0) << result.errors;
  TensorFile found(ours), expected(out);
  const TensorEntry &a = found.get("mean"), &b = expected.get("mean");
  ASSERT_EQ(a.data.size(), b.data.size());
  const auto* x = reinterpret_cast<const float*>(a.data.data());
  const auto* y = reinterpret_cast<const float*>(b.data.data());
  // torch orthogonalises by QR in fp32, we by Gram-Schmidt in double.
  for (int64_t i = 0; i < kSteps * kRows * kColumns; ++i) ASSERT_NEAR(x[i], y[i], 2e-4) << i;
}

}  // namespace
}  // namespace lockstep
