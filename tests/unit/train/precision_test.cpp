#include "train/config/precision.h"

#include <gtest/gtest.h>

#include "train/config/run_config.h"

namespace lockstep {
namespace {

NamedFormats cpu(const std::string& name, const std::string& isa) {
  return {name, cpu_formats(isa, /*fast_bf16=*/isa == "avx512_dot")};
}
NamedFormats t4(const std::string& name) { return {name, gpu_formats("Tesla T4", 7, 5)}; }
NamedFormats a10g(const std::string& name) { return {name, gpu_formats("NVIDIA A10G", 8, 6)}; }

std::string chosen(const std::vector<NamedFormats>& all) {
  const PrecisionChoice choice = choose_precision(all);
  return choice.precision + ", " + choice.why;
}

TEST(Precision, OfACpuIsBf16WithFastInstructionsForIt) {
  EXPECT_EQ(chosen({cpu("a", "avx512_dot")}), "bf16, this CPU has avx512_bf16");
  EXPECT_EQ(chosen({cpu("a", "amx")}), "bf16, this CPU has amx_bf16");
  EXPECT_EQ(chosen({{"a", cpu_formats("avx512_dot", /*fast_bf16=*/false)}}),
            "fp32, this CPU's avx512_bf16 is slower than fp32, and it has no amx_bf16");
  EXPECT_EQ(chosen({cpu("a", "avx512")}),
            "fp32, this CPU (avx512) has neither avx512_bf16 nor amx_bf16");
  EXPECT_EQ(chosen({cpu("a", "generic")}),
            "fp32, this CPU (generic) has neither avx512_bf16 nor amx_bf16");
}

TEST(Precision, OfAGpuGoesByItsComputeCapability) {
  EXPECT_EQ(chosen({a10g("a")}), "bf16, the NVIDIA A10G has compute capability 8.6");
  EXPECT_EQ(chosen({{"a", gpu_formats("NVIDIA H200", 9, 0)}}),
            "bf16, the NVIDIA H200 has compute capability 9.0");
  EXPECT_EQ(chosen({t4("a")}), "fp16, the Tesla T4 has compute capability 7.5, bf16 needs 8.0");
  EXPECT_EQ(chosen({{"a", gpu_formats("Tesla V100-SXM2-16GB", 7, 0)}}),
            "fp16, the Tesla V100-SXM2-16GB has compute capability 7.0, bf16 needs 8.0");
  EXPECT_EQ(chosen({{"a", gpu_formats("NVIDIA GeForce GTX 1080", 6, 1)}}),
            "fp32, the NVIDIA GeForce GTX 1080 has compute capability 6.1, fp16 needs 7.0 and bf16 "
            "8.0");
}

TEST(Precision, IsWhatTheWeakestRankComputes) {
  EXPECT_EQ(chosen({a10g("rank 0 on a"), t4("rank 1 on b")}),
            "fp16, rank 1 on b: the Tesla T4 has compute capability 7.5, bf16 needs 8.0");
  EXPECT_EQ(chosen({cpu("rank 0 on a", "amx"), cpu("rank 1 on b", "avx2")}),
            "fp32, rank 1 on b: this CPU (avx2) has neither avx512_bf16 nor amx_bf16");
  EXPECT_EQ(chosen({cpu("rank 0 on a", "avx2"), cpu("rank 1 on b", "amx")}),
            "fp32, this CPU (avx2) has neither avx512_bf16 nor amx_bf16");
  // Each computes a 16-bit format, but not the same one.
  EXPECT_EQ(chosen({cpu("rank 0 on a", "amx"), t4("rank 1 on b")}),
            "fp32, rank 1 on b: the Tesla T4 has compute capability 7.5, bf16 needs 8.0");
}

TEST(Precision, Fp32NeedsNothing) {
  EXPECT_TRUE(cpu_formats("generic", false).has("fp32"));
  EXPECT_FALSE(cpu_formats("generic", false).has("bf16"));
  EXPECT_FALSE(cpu_formats("amx", false).has("fp16")) << "computed in fp32 and rounded";
}

TEST(Precision, OneThatIsGivenStays) {
  RunSection run;
  EXPECT_EQ(run.precision, "auto");
  run.precision = "fp16";
  settle_precision(run, false, 0);
  EXPECT_EQ(run.precision, "fp16");
  run.precision = "auto";
  settle_precision(run, false, 0);
  EXPECT_NE(run.precision, "auto");
}

}  // namespace
}  // namespace lockstep
