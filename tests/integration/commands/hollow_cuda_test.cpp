// libtorch's own code for CUDA, on a machine without a GPU (tests/support/hollow_cuda.cpp): every
// task runs to its end in it, what its kernels compute left aside; and what NCCL's process groups
// do when an operation fails.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <sstream>

#include "support/program.h"
#include "support/tiny_corpus.h"
#include "support/tiny_images.h"
#include "support/tiny_texts.h"

#ifndef LOCKSTEP_HOLLOW_CUDA
#define LOCKSTEP_HOLLOW_CUDA ""
#endif

namespace lockstep {
namespace {

class HollowCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    if (*LOCKSTEP_HOLLOW_CUDA == '\0') {
      GTEST_SKIP() << "needs a CUDA 13 wheel of torch: scripts/test --torch cuda";
    }
  }

  fs::path file(const std::string& name) const { return folder_.path() / name; }

  // New memory is always zeros, so that no number is out of its range.
  ProgramResult run(const std::string& words, const std::string& environment = "") const {
    return run_lockstep(words, fmt::format("OMP_NUM_THREADS=1 PYTORCH_NO_CUDA_MEMORY_CACHING=1 {} "
                                           "LD_PRELOAD={}",
                                           environment, LOCKSTEP_HOLLOW_CUDA));
  }
  std::string train(const std::string& words) const {
    return fmt::format("train {}/tiny.toml run.folder={}/run run.device=cuda {}",
                       folder_.path().string(), folder_.path().string(), words);
  }
  std::string launch(const std::string& words) const { return "launch -n 2 -- " + train(words); }

  void make_translation() const {
    ASSERT_EQ(make_tiny_corpus(folder_.path()), "");
    write_tiny_config(folder_.path());
  }
  void make_images() const {
    write_tiny_images(file("data"));
    write_tiny_image_config(file("tiny.toml"), file("data"));
  }

  // Trains 4 steps with an evaluation, goes on to the 6th, and evaluates again.
  void expect_whole_run(const std::string& words, const std::string& environment = "") const {
    const std::string all = train("evaluation.every=4 training.average_decay=0.9 " + words);
    const ProgramResult first = run(all + " training.steps=4", environment);
    ASSERT_EQ(first.exit_code, 0) << first.errors;
    EXPECT_NE(first.errors.find("on cuda:0"), std::string::npos) << first.errors;
    const ProgramResult then = run(all + " training.steps=6 --resume", environment);
    ASSERT_EQ(then.exit_code, 0) << then.errors;
    EXPECT_EQ(metrics_of(file("run"), "step").size(), 6u);
    const ProgramResult evaluated =
        run(fmt::format("evaluate {}/run --checkpoint newest", folder_.path().string()));
    EXPECT_EQ(evaluated.exit_code, 0) << evaluated.errors;
    fs::remove_all(file("run"));
  }

  // How often a step calls each function and runs each kernel, from runs of two lengths.
  std::map<std::string, double> counts_of_a_step(const std::string& words) const {
    std::map<std::string, double> out;
    for (const int steps : {2, 12}) {
      fs::remove_all(file("run"));
      const fs::path counts = file("counts");
      fs::create_directory(counts);
      const ProgramResult r =
          run(train(fmt::format("training.steps={} evaluation.every=0 {}", steps, words)),
              fmt::format("HOLLOW_CUDA_COUNTS={}/of", counts.string()));
      EXPECT_EQ(r.exit_code, 0) << r.errors;
      for (const fs::directory_entry& entry : fs::directory_iterator(counts)) {
        std::istringstream lines(read_file(entry.path()));
        double number = 0;
        for (std::string name; lines >> number && std::getline(lines, name);) {
          out[name.substr(1)] += (steps == 2 ? -number : number) / 10;
        }
      }
      fs::remove_all(counts);
    }
    return out;
  }
  static double sum_of(const std::map<std::string, double>& counts, const std::string& part) {
    double sum = 0;
    for (const auto& [name, number] : counts) {
      if (name.find(part) != std::string::npos) sum += number;
    }
    return sum;
  }

  // Two ranks one of whose all-reduces fails: each says where and ends, and soon.
  ProgramResult expect_end(const std::string& how) const {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    const ProgramResult r =
        run(launch("training.steps=100 evaluation.every=0 comm.timeout_seconds=5"),
            fmt::format("HOLLOW_CUDA_DEVICES=2 HOLLOW_CUDA_REDUCE=40 HOLLOW_CUDA_FAILS={}", how));
    EXPECT_EQ(r.exit_code, 4) << r.errors;
    EXPECT_NE(r.errors.find("of 2 in all-reduce of gradient bucket"), std::string::npos)
        << r.errors;
    EXPECT_NE(r.errors.find("exited with code 4"), std::string::npos) << r.errors;
    // c10d's watchdog would sleep for a minute.
    EXPECT_LT(std::chrono::duration<double>(Clock::now() - start).count(), 40);
    return r;
  }

  TemporaryFolder folder_;
};

TEST_F(HollowCuda, TranslationRunsToItsEnd) {
  make_translation();
  expect_whole_run("run.precision=auto");
  expect_whole_run("run.precision=fp32 model.attention_dropout=0.1");
  expect_whole_run("run.precision=bf16 run.fused=false");
  const ProgramResult r = run(train("run.precision=auto training.steps=2 evaluation.every=0"));
  ASSERT_EQ(r.exit_code, 0) << r.errors;
  write_file(file("lines"), "one two three\nfour\n");
  for (const char* words : {"", "decoding.beam_size=1", "run.precision=fp32"}) {
    const ProgramResult translated =
        run(fmt::format("translate {0}/run --checkpoint newest --input {0}/lines {1}",
                        folder_.path().string(), words));
    EXPECT_EQ(translated.exit_code, 0) << translated.errors;
  }
}

TEST_F(HollowCuda, ImagesRunToTheirEnd) {
  make_images();
  expect_whole_run("model.name=resnet18 run.precision=bf16");
  expect_whole_run("model.name=resnet50 run.precision=fp16");
  expect_whole_run("model.name=vit_ti16 model.patch=8 model.stem=imagenet run.precision=auto");
}

TEST_F(HollowCuda, TextsRunToTheirEnd) {
  write_tiny_bert(folder_.path(), 2);
  ASSERT_EQ(prepare_tiny_texts(folder_.path()), "");
  write_tiny_text_config(folder_.path());
  expect_whole_run("run.precision=auto");
  expect_whole_run("run.precision=fp32 model.hidden_dropout_prob=0.1");
}

// Without hardware for bf16, automatic precision is fp16 with a scale of the loss.
TEST_F(HollowCuda, AnOlderGpuComputesInFp16) {
  make_translation();
  const ProgramResult r = run(train("run.precision=auto training.steps=4 evaluation.every=0"),
                              "HOLLOW_CUDA_CAPABILITY=75");
  ASSERT_EQ(r.exit_code, 0) << r.errors;
  EXPECT_NE(r.errors.find("fp16 (auto: the Hollow GPU has compute capability 7.5"),
            std::string::npos)
      << r.errors;
}

// A batch norm and what follows it read and write activations of 16 bits, each once.
TEST_F(HollowCuda, ResNetWidensNoActivations) {
  make_images();
  const auto counts = counts_of_a_step("model.name=resnet18 run.precision=bf16");
  EXPECT_EQ(sum_of(counts, "PixelNormForward"), 20) << "one for each of its batch norms";
  EXPECT_EQ(sum_of(counts, "PixelNormBackwardSums"), 20);
  EXPECT_EQ(sum_of(counts, "kernel cudnnBatchNorm"), 0);
  // Of the last layer and the images; plain_conv_norm makes 80.
  EXPECT_LT(sum_of(counts, "bfloat16_copy_kernel_cuda"), 10);
}

// A step waits for the GPU twice, for its figures and for the norm of its gradients.
TEST_F(HollowCuda, AStepOfTranslationWaitsTwice) {
  make_translation();
  const auto counts = counts_of_a_step("run.precision=bf16");
  EXPECT_NEAR(sum_of(counts, "cudaStreamSynchronize"), 2, 0.2);
  EXPECT_EQ(sum_of(counts, "copy 2"), 2) << "from the GPU";
  EXPECT_LT(sum_of(counts, "kernel "), 200);
}

TEST_F(HollowCuda, RanksWithAGpuEachMeetByNccl) {
  make_translation();
  const ProgramResult r = run(launch("training.steps=6 evaluation.every=4 run.precision=bf16"),
                              "HOLLOW_CUDA_DEVICES=2");
  EXPECT_EQ(r.exit_code, 0) << r.errors;
  EXPECT_NE(r.errors.find("2 ranks x 1 thread on cuda:0"), std::string::npos) << r.errors;
}

TEST_F(HollowCuda, AnOperationThatNcclRefusesEndsTheRanks) {
  make_translation();
  const ProgramResult r = expect_end("call");
  EXPECT_NE(r.errors.find("the hollow network is down"), std::string::npos) << r.errors;
}

// The watchdog finds it and aborts the operations beside the loop, whichever of the two is first to
// say what it was.
TEST_F(HollowCuda, AnErrorThatNcclTellsLaterEndsTheRanks) {
  make_translation();
  const std::string errors = expect_end("async").errors;
  EXPECT_TRUE(errors.find("the hollow network is down") != std::string::npos ||
              errors.find("NCCL lost its connection to another rank") != std::string::npos)
      << errors;
}

// An operation that is aborted ends with whatever it has, and its work says nothing of that: the
// step is not taken.
TEST_F(HollowCuda, AnOperationThatNeverEndsEndsTheStep) {
  make_translation();
  const std::string errors = expect_end("hang").errors;
  EXPECT_NE(errors.find("an operation of NCCL did not end within comm.timeout_seconds"),
            std::string::npos)
      << errors;
  EXPECT_NE(errors.find(" optimizer, in operation "), std::string::npos) << errors;
}

// Threads of c10d and destructors meet the failed GPU as well as the loop does, which alone may say
// so: nobody ends the process by a signal.
TEST_F(HollowCuda, AGpuThatFailsIsAFailureOfTheMachine) {
  make_translation();
  const std::string words = "training.steps=100 evaluation.every=0";
  const std::string says =
      "error: a GPU failed\n  because: CUDA error: an illegal memory access was encountered\n";
  const ProgramResult alone = run(train(words), "HOLLOW_CUDA_BREAKS=5000");
  EXPECT_EQ(alone.exit_code, 4) << alone.errors;
  EXPECT_NE(alone.errors.find(says), std::string::npos) << alone.errors;
  fs::remove_all(file("run"));
  const ProgramResult both = run(launch(words), "HOLLOW_CUDA_DEVICES=2 HOLLOW_CUDA_BREAKS=5000");
  EXPECT_EQ(both.exit_code, 4) << both.errors;
  EXPECT_NE(both.errors.find("exited with code 4"), std::string::npos) << both.errors;
  EXPECT_EQ(both.errors.find("killed by"), std::string::npos) << both.errors;
  fs::remove_all(file("run"));
  const ProgramResult one =
      run(launch(words), "HOLLOW_CUDA_DEVICES=2 HOLLOW_CUDA_BREAKS=5000 HOLLOW_CUDA_RANK=1");
  EXPECT_EQ(one.exit_code, 4) << one.errors;
  EXPECT_NE(one.errors.find("[rank 1] " + says.substr(0, 19)), std::string::npos) << one.errors;
  EXPECT_EQ(one.errors.find("killed by SIGABRT"), std::string::npos) << one.errors;
}

TEST_F(HollowCuda, AFullGpuIsAnErrorThatSaysWhatWouldHelp) {
  make_images();
  const ProgramResult full = run(train("model.name=resnet50 run.precision=bf16 training.steps=2"),
                                 "HOLLOW_CUDA_MEMORY=400000000");
  EXPECT_EQ(full.exit_code, 4) << full.errors;
  EXPECT_NE(full.errors.find("error: not enough memory\n  because: CUDA error: out of memory"),
            std::string::npos)
      << full.errors;
  EXPECT_NE(full.errors.find("training.fit_memory = true"), std::string::npos) << full.errors;
}

TEST_F(HollowCuda, DoctorFindsTheGpuInOrder) {
  const ProgramResult r = run("doctor");
  EXPECT_EQ(r.exit_code, 0) << r.output << r.errors;
  EXPECT_NE(r.output.find("bf16 (auto: the Hollow GPU has compute capability 9.0)"),
            std::string::npos)
      << r.output;
}

}  // namespace
}  // namespace lockstep
