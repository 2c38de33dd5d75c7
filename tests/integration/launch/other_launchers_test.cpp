// The same program under the launchers of others, started for real: Open MPI, MPICH, torchrun, and
// processes with the variables of srun.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "support/tiny_runs.h"
#include "support/virtual_hosts.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;

#define EXPECT_HOLDS(text, words) EXPECT_NE((text).find(words), std::string::npos) << (text)

std::string torchrun() { return (fs::path(LOCKSTEP_PYTHON).parent_path() / "torchrun").string(); }

#define SKIP_WITHOUT(program) \
  if (::access(program, X_OK) != 0) GTEST_SKIP() << "no " << program << " here"

constexpr const char* kOpenMpi = "/usr/bin/mpirun.openmpi";
constexpr const char* kMpich = "/usr/bin/mpiexec.hydra";
constexpr const char* kMpirun =
    "/usr/bin/mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none";

class OtherLaunchers : public TinyRuns {
 protected:
  // The command that a launcher is given.
  std::string train_words(const std::string& name, const std::string& more = "") const {
    return fmt::format("'{}' train {}/tiny.toml run.folder={} training.steps=5 {}",
                       LOCKSTEP_PROGRAM, folder_->path().string(), run(name).string(), more);
  }
  // Through the shell, one thread a rank; ended after a minute.
  ProgramResult start(const std::string& command) const {
    std::string output = (folder_->path() / "output").string();
    int status = std::system(fmt::format("cd {}; OMP_NUM_THREADS=1 timeout -k 5 60 {} "
                                         ">{} 2>{}.err </dev/null",
                                         folder_->path().string(), command, output, output)
                                 .c_str());
    return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            .output = read_file(output),
            .errors = read_file(output + ".err")};
  }
  std::string last_step(const std::string& name) const {
    return metrics_of(run(name), "step").back().at("train/loss").dump();
  }
  // The same digits as with our own launcher: the ranks are the same and see the same data.
  void expect_same_training(const std::string& name, const ProgramResult& result) const {
    ASSERT_EQ(result.exit_code, 0) << result.output << result.errors;
    if (!fs::exists(run("own"))) {
      ASSERT_EQ(train("own", 2, "training.steps=5").exit_code, 0);
    }
    EXPECT_EQ(last_step(name), last_step("own"));
  }
};

TEST_F(OtherLaunchers, OpenMpiOnOneHost) {
  SKIP_WITHOUT(kOpenMpi);
  expect_same_training("openmpi",
                       start(fmt::format("{} -np 2 {}", kMpirun, train_words("openmpi"))));
}

TEST_F(OtherLaunchers, MpichOnOneHost) {
  SKIP_WITHOUT(kMpich);
  expect_same_training("mpich", start(fmt::format("{} -n 2 {}", kMpich, train_words("mpich"))));
}

TEST_F(OtherLaunchers, Torchrun) {
  std::string program = torchrun();
  SKIP_WITHOUT(program.c_str());
  std::string words = fmt::format("{} --standalone --nproc-per-node 2 --no-python", program);
  expect_same_training("torchrun", start(words + " " + train_words("torchrun")));
}

TEST_F(OtherLaunchers, ProcessesWithTheVariablesOfSrun) {
  std::string task =
      "SLURM_JOB_ID=$$ SLURM_STEP_ID=0 SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=2 SLURM_NODEID=0 "
      "SLURM_STEP_TASKS_PER_NODE=2 SLURM_STEP_NODELIST=node7 ";
  std::string both;
  for (int rank : {0, 1}) {
    both += fmt::format("{0}SLURM_PROCID={1} SLURM_LOCALID={1} {2} & p{1}=$!; ", task, rank,
                        train_words("srun"));
  }
  write_file(folder_->path() / "step.sh", both + "wait $p0 && wait $p1\n");
  expect_same_training("srun", start("sh step.sh"));
}

TEST_F(OtherLaunchers, RefusesAnotherNumberOfHostsThanExpected) {
  SKIP_WITHOUT(kOpenMpi);
  ProgramResult result =
      start(fmt::format("{} -np 2 {}", kMpirun, train_words("hosts", "--expect-hosts 2")));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_HOLDS(result.errors, "the ranks run on 1 machine, expected were 2");
  EXPECT_HOLDS(
      run_lockstep(fmt::format("train {}/tiny.toml --expect-hosts 2", folder_->path().string()))
          .errors,
      "--expect-hosts 2: there is only 1 rank");
}

TEST_F(OtherLaunchers, RefusesALaunchersVariablesThatContradictAnothers) {
  SKIP_WITHOUT(kOpenMpi);
  ProgramResult result = start(
      fmt::format("{} -np 2 -x RANK=0 -x WORLD_SIZE=1 {}", kMpirun, train_words("contradiction")));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_HOLDS(result.errors, "Open MPI and torchrun disagree");
}

// An MPI that counts for itself only starts N processes that each are rank 0 of 1.
TEST_F(OtherLaunchers, LoneRanksOfOneJobDoNotTrainIntoOneFolder) {
  SKIP_WITHOUT(kMpich);
  ProgramResult result =
      start(fmt::format("{} -n 2 env -u PMI_RANK -u PMI_SIZE -u MPI_LOCALRANKID "
                        "-u MPI_LOCALNRANKS {}",
                        kMpich, train_words("lone")));
  EXPECT_NE(result.exit_code, 0);
  EXPECT_HOLDS(result.errors, "lone: already holds a run");
  EXPECT_HOLDS(result.errors, "each takes itself for the only one");
}

TEST_F(OtherLaunchers, OpenMpiOnTwoHostsFindsTheAddressByItself) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  SKIP_WITHOUT(kOpenMpi);
  VirtualHosts two("[hosts]\nnames = ['a', 'b']\n");
  auto [code, text] = two.run("a",
                              fmt::format("OMP_NUM_THREADS=1 {} -np 2 -H a:1,b:1 {}", kMpirun,
                                          train_words("two-openmpi", "--expect-hosts 2")),
                              60s);
  expect_same_training("two-openmpi", {.exit_code = code, .output = text});
}

TEST_F(OtherLaunchers, MpichOnTwoHostsFindsTheAddressByItself) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  SKIP_WITHOUT(kMpich);
  VirtualHosts two("[hosts]\nnames = ['a', 'b']\n");
  auto [code, text] = two.run("control",
                              fmt::format("OMP_NUM_THREADS=1 {} -launcher ssh -hosts a,b -n 2 {}",
                                          kMpich, train_words("two-mpich", "--expect-hosts 2")),
                              60s);
  expect_same_training("two-mpich", {.exit_code = code, .output = text});
}

}  // namespace
}  // namespace lockstep
