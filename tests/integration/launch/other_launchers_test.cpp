// The same program under the launchers of others, started for real: Open MPI, MPICH, torchrun, and
// processes with the variables of srun.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "support/tiny_runs.h"
#include "support/unshared_lab.h"
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
  void make_own() const {
    if (fs::exists(run("own"))) return;
    ASSERT_EQ(train("own", 2, "training.steps=5").exit_code, 0);
  }
  // The same digits as with our own launcher: the ranks are the same and see the same data.
  void expect_same_training(const std::string& name, const ProgramResult& result) const {
    ASSERT_EQ(result.exit_code, 0) << result.output << result.errors;
    make_own();
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

// Two hosts that share nothing, and were given each other's names and a key.
class OverHosts : public OtherLaunchers {
 protected:
  void SetUp() override {
    OtherLaunchers::SetUp();
    SKIP_WITHOUT_VIRTUAL_HOSTS();
    fs::copy_file(LOCKSTEP_SOURCE "/docs/examples/hosts.txt", folder_->path() / "hosts.txt",
                  fs::copy_options::overwrite_existing);
    hosts_ = std::make_unique<VirtualHosts>(unshared_lab({"a", "b"}, folder_->path()));
    introduce(hosts_->lab(), {"a", "b"});
  }
  void TearDown() override { hosts_.reset(); }
  VirtualHosts& hosts() { return *hosts_; }
  // The command on each host: the same folder, which every host has for itself.
  std::string train_here() const {
    return fmt::format(
        "'{}' train {}/tiny.toml run.folder=/srv/run training.steps=5 "
        "--expect-hosts 2",
        LOCKSTEP_PROGRAM, folder_->path().string());
  }
  std::pair<int, std::string> run_on(const std::string& host, const std::string& command) {
    return hosts().run(host, "cd /tmp; export OMP_NUM_THREADS=1; " + command, 60s);
  }
  void expect_training(const std::pair<int, std::string>& end) {
    ASSERT_EQ(end.first, 0) << end.second;
    make_own();
    const fs::path here = hosts().lab().path_on_this_machine("a", "/srv/run");
    EXPECT_EQ(metrics_of(here, "step").back().at("train/loss").dump(), last_step("own"));
    const fs::path there = hosts().lab().path_on_this_machine("b", "/srv/run");
    EXPECT_TRUE(fs::exists(there / "checkpoints/step_5/DONE")) << end.second;
    EXPECT_FALSE(fs::exists(there / "metrics.jsonl"));
  }

 private:
  std::unique_ptr<VirtualHosts> hosts_;
};

TEST_F(OverHosts, OpenMpiFindsTheAddressByItself) {
  SKIP_WITHOUT(kOpenMpi);
  expect_training(run_on("a", fmt::format("{} -x OMP_NUM_THREADS -np 2 --map-by node --hostfile "
                                          "{}/hosts.txt {}",
                                          kMpirun, folder_->path().string(), train_here())));
}

TEST_F(OverHosts, OpenMpiOnAThirdMachineIsToldTheAddress) {
  SKIP_WITHOUT(kOpenMpi);
  const auto command = [&](const std::string& more) {
    return fmt::format("{} -np 2 -H a:1,b:1 -x OMP_NUM_THREADS {} {}", kMpirun, more, train_here());
  };
  const auto [code, said] = run_on("control", command(""));
  EXPECT_EQ(code, 2) << said;
  EXPECT_HOLDS(said, "mpirun -x MASTER_ADDR=ADDRESS");
  expect_training(run_on("control", command("-x MASTER_ADDR=" + hosts().lab().address("a"))));
}

TEST_F(OverHosts, MpichFindsTheAddressByItself) {
  SKIP_WITHOUT(kMpich);
  expect_training(
      run_on("control", fmt::format("{} -launcher ssh -hosts a,b -n 2 {}", kMpich, train_here())));
}

TEST_F(OverHosts, TorchrunOnEach) {
  const std::string program = torchrun();
  SKIP_WITHOUT(program.c_str());
  const auto command = [&](int host) {
    return fmt::format(
        "{} --nnodes 2 --nproc-per-node 1 --node-rank {} --master-addr {} "
        "--master-port 29511 --no-python {}",
        program, host, hosts().lab().address("a"), train_here());
  };
  auto other = hosts().start("b", {"/bin/sh", "-c", "OMP_NUM_THREADS=1 exec " + command(1)});
  expect_training(run_on("a", command(0)));
  EXPECT_EQ(other->wait(30s), 0) << other->output();
}

}  // namespace
}  // namespace lockstep
