#include "dist/rank/launch_environment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/digest.h"
#include "base/error.h"

namespace lockstep {
namespace {

using Variables = std::map<std::string, std::string>;

LaunchEnvironment detect(const Variables& variables) {
  return detect_launch_environment([&](const char* name) -> std::optional<std::string> {
    auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

// The whole text of the ConfigError that `variables` must give.
std::string refusal(const Variables& variables) {
  try {
    detect(variables);
  } catch (const ConfigError& error) {
    return error.describe();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

Variables with(Variables base, const Variables& more) {
  for (const auto& [name, value] : more) base[name] = value;
  return base;
}

const Variables kOpenMpi4 = {
    {"OMPI_COMM_WORLD_RANK", "3"},       {"OMPI_COMM_WORLD_SIZE", "4"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
    {"OMPI_COMM_WORLD_NODE_RANK", "7"},  {"PMIX_RANK", "3"},
    {"PMIX_NAMESPACE", "3124723713"}};

const Variables kTorchrun = {{"RANK", "5"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "10.0.0.7"},
                             {"MASTER_PORT", "29400"},
                             {"TORCHELASTIC_RUN_ID", "abc"},
                             {"TORCHELASTIC_RESTART_COUNT", "2"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"}};

const Variables kSlurm = {{"SLURM_PROCID", "4"},
                          {"SLURM_LOCALID", "0"},
                          {"SLURM_NODEID", "2"},
                          {"SLURM_NTASKS", "5"},
                          {"SLURM_STEP_NUM_TASKS", "5"},
                          {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
                          {"SLURM_STEP_NODELIST", "gnode[08,10-11]"},
                          {"SLURM_JOB_ID", "123456"},
                          {"SLURM_STEP_ID", "0"}};

TEST(LaunchEnvironment, IsTheOnlyRankWithoutALauncher) {
  LaunchEnvironment seen = detect({{"HOME", "/"}});
  EXPECT_EQ(seen.rank, 0);
  EXPECT_EQ(seen.size, 1);
  EXPECT_EQ(seen.local_size, 1);
  EXPECT_EQ(seen.launcher, "none");
  EXPECT_EQ(seen.store_descriptor, -1);
}

TEST(LaunchEnvironment, ReadsOurOwnLauncher) {
  Variables own = {{"LOCKSTEP_RANK", "0"},
                   {"LOCKSTEP_SIZE", "2"},
                   {"LOCKSTEP_LOCAL_RANK", "0"},
                   {"LOCKSTEP_LOCAL_SIZE", "2"},
                   {"LOCKSTEP_MASTER_ADDRESS", "127.0.0.1"},
                   {"LOCKSTEP_MASTER_PORT", "4242"},
                   {"LOCKSTEP_STORE_FD", "9"},
                   {"LOCKSTEP_RUN_ID", "r"},
                   {"LOCKSTEP_ATTEMPT", "3"}};
  LaunchEnvironment seen = detect(own);
  EXPECT_EQ(seen.launcher, "lockstep");
  EXPECT_EQ(seen.master_port, 4242);
  EXPECT_EQ(seen.store_descriptor, 9);
  EXPECT_EQ(seen.attempt, 3);
  EXPECT_FALSE(seen.store_is_served);
  own["LOCKSTEP_RANK"] = own["LOCKSTEP_LOCAL_RANK"] = "1";
  EXPECT_EQ(detect(own).store_descriptor, -1) << "only rank 0 serves";
}

TEST(LaunchEnvironment, TakesTheSecretThatAllRanksShare) {
  EXPECT_FALSE(detect(kTorchrun).secret);
  const std::string digits = "00112233445566778899aabbccddeeff";
  EXPECT_EQ(to_hex(detect(with(kTorchrun, {{"LOCKSTEP_SECRET", digits}})).secret.value()), digits);
  for (const std::string& wrong : {digits.substr(1), digits + "0", std::string(32, 'x')}) {
    try {
      detect(with(kTorchrun, {{"LOCKSTEP_SECRET", wrong}}));
      ADD_FAILURE() << wrong;
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.describe().find(wrong), std::string::npos) << "a secret is not shown";
      EXPECT_NE(error.describe().find("32 hexadecimal digits"), std::string::npos);
    }
  }
}

TEST(LaunchEnvironment, ReadsTorchrunAndKnowsThatItsAgentServesTheStore) {
  LaunchEnvironment seen = detect(kTorchrun);
  EXPECT_EQ(seen.rank, 5);
  EXPECT_EQ(seen.size, 8);
  EXPECT_EQ(seen.local_rank, 1);
  EXPECT_EQ(seen.local_size, 4);
  EXPECT_EQ(seen.master_address, "10.0.0.7");
  EXPECT_EQ(seen.master_port, 29400);
  EXPECT_EQ(seen.run_id, "abc");
  EXPECT_EQ(seen.attempt, 2);
  EXPECT_TRUE(seen.store_is_served);
  EXPECT_FALSE(
      detect(with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}})).store_is_served);
}

TEST(LaunchEnvironment, TakesRankAndSizeByHandWithoutLocalOnes) {
  Variables by_hand = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}};
  EXPECT_EQ(detect(by_hand).local_rank, 1);
  EXPECT_EQ(detect(by_hand).local_size, 2);
  EXPECT_EQ(detect(by_hand).master_port, 29500);
  by_hand["MASTER_ADDR"] = "10.0.0.1";
  EXPECT_EQ(detect(by_hand).local_rank, 0) << "on another host each is taken to be alone";
  EXPECT_EQ(detect(by_hand).local_size, 1);
}

TEST(LaunchEnvironment, NeedsTheAddressUnderOpenMpiOnSeveralHosts) {
  std::string text = refusal(kOpenMpi4);
  EXPECT_NE(text.find("mpirun -x MASTER_ADDR="), std::string::npos) << text;
  LaunchEnvironment seen = detect(with(kOpenMpi4, {{"MASTER_ADDR", "10.1.1.1"}}));
  EXPECT_EQ(seen.rank, 3);
  EXPECT_EQ(seen.size, 4);
  EXPECT_EQ(seen.local_rank, 1) << "the rank among those of this job, not of the node";
  EXPECT_EQ(seen.master_address, "10.1.1.1");
}

TEST(LaunchEnvironment, NeedsNoAddressUnderOpenMpiOnOneHost) {
  Variables local =
      with(kOpenMpi4, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "3"}});
  LaunchEnvironment one = detect(local);
  EXPECT_EQ(one.master_address, "127.0.0.1");
  EXPECT_GE(one.master_port, 15000);
  EXPECT_LT(one.master_port, 30000);
  LaunchEnvironment other_rank =
      detect(with(local, {{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "2"}}));
  EXPECT_EQ(one.master_port, other_rank.master_port) << "all ranks of a job must meet";
  LaunchEnvironment other_job = detect(with(local, {{"PMIX_NAMESPACE", "prterun-a-77@1"}}));
  EXPECT_NE(one.master_port, other_job.master_port) << "two jobs must not";
}

TEST(LaunchEnvironment, ReadsOpenMpi5SecondNamesOfTheSizes) {
  LaunchEnvironment seen = detect({{"OMPI_COMM_WORLD_RANK", "1"},
                                   {"OMPI_WORLD_SIZE", "2"},
                                   {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                   {"OMPI_WORLD_LOCAL_SIZE", "2"}});
  EXPECT_EQ(seen.launcher, "Open MPI");
  EXPECT_EQ(seen.size, 2);
}

TEST(LaunchEnvironment, TakesTheAddressOfMpirunWhereRank0IsOnItsHost) {
  const std::string uri = "42.0;tcp://172.17.0.1,10.0.0.5,192.0.2.5:36693;tcp6://[fd00::2]:57297";
  Variables rank3 = with(kOpenMpi4, {{"OMPI_MCA_orte_hnp_uri", uri}});
  EXPECT_EQ(detect(rank3).master_address, "10.0.0.5") << "not docker0's";
  EXPECT_EQ(detect(with(rank3, {{"MASTER_ADDR", "n0"}})).master_address, "n0");
  Variables rank0 = with(rank3, {{"OMPI_COMM_WORLD_RANK", "0"},
                                 {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                 {"OMPI_MCA_orte_local_daemon_uri", uri}});
  EXPECT_EQ(detect(rank0).master_address, "10.0.0.5");
  rank0["OMPI_MCA_orte_local_daemon_uri"] = "42.1;tcp://10.0.0.6:1";
  EXPECT_NE(refusal(rank0).find("but not where rank 0 is"), std::string::npos);
}

TEST(LaunchEnvironment, RefusesAListOfHostsThatOpenMpi5DoesNotRead) {
  Variables version5 = with(kOpenMpi4, {{"PRTE_LAUNCHED", "1"}, {"MASTER_ADDR", "10.0.0.1"}});
  EXPECT_EQ(detect(version5).size, 4);
  version5["OMPI_MCA_orte_default_hostfile"] = "/etc/hosts.mpi";
  std::string text = refusal(version5);
  EXPECT_NE(text.find("PRTE_MCA_prte_default_hostfile=FILE"), std::string::npos) << text;
  version5["PRTE_MCA_prte_default_hostfile"] = "/etc/hosts.mpi";
  EXPECT_EQ(detect(version5).size, 4);
}

TEST(LaunchEnvironment, ReadsHorovodrun) {
  LaunchEnvironment seen = detect({{"HOROVOD_RANK", "2"},
                                   {"HOROVOD_SIZE", "4"},
                                   {"HOROVOD_LOCAL_RANK", "0"},
                                   {"HOROVOD_LOCAL_SIZE", "2"},
                                   {"MASTER_ADDR", "10.0.0.1"}});
  EXPECT_EQ(seen.launcher, "horovodrun");
  EXPECT_EQ(seen.rank, 2);
}

TEST(LaunchEnvironment, ReadsHydraAndMvapich) {
  LaunchEnvironment hydra = detect({{"PMI_RANK", "1"},
                                    {"PMI_SIZE", "2"},
                                    {"PMI_FD", "7"},
                                    {"MPI_LOCALRANKID", "1"},
                                    {"MPI_LOCALNRANKS", "2"}});
  EXPECT_EQ(hydra.launcher, "MPICH");
  EXPECT_EQ(hydra.rank, 1);
  EXPECT_EQ(hydra.master_address, "") << "to be asked through PMI_FD";
  LaunchEnvironment given = detect({{"PMI_RANK", "1"},
                                    {"PMI_SIZE", "2"},
                                    {"PMI_FD", "7"},
                                    {"MASTER_ADDR", "10.0.0.1"},
                                    {"MPI_LOCALRANKID", "0"},
                                    {"MPI_LOCALNRANKS", "1"}});
  EXPECT_EQ(given.master_address, "10.0.0.1");
  EXPECT_EQ(given.master_port, 29500);
  LaunchEnvironment mvapich = detect({{"MV2_COMM_WORLD_RANK", "0"},
                                      {"MV2_COMM_WORLD_SIZE", "2"},
                                      {"MV2_COMM_WORLD_LOCAL_RANK", "0"},
                                      {"MV2_COMM_WORLD_LOCAL_SIZE", "2"}});
  EXPECT_EQ(mvapich.launcher, "MVAPICH2");
  std::string text = refusal({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
  EXPECT_NE(text.find("MPI_LOCALRANKID is not set"), std::string::npos) << text;
}

TEST(LaunchEnvironment, ReadsAStepOfSlurm) {
  LaunchEnvironment seen = detect(kSlurm);
  EXPECT_EQ(seen.launcher, "Slurm");
  EXPECT_EQ(seen.rank, 4);
  EXPECT_EQ(seen.size, 5);
  EXPECT_EQ(seen.local_size, 1) << "the third host has one task";
  EXPECT_EQ(seen.master_address, "gnode08");
  EXPECT_EQ(seen.run_id, "123456.0");
  LaunchEnvironment first =
      detect(with(kSlurm, {{"SLURM_PROCID", "1"}, {"SLURM_LOCALID", "1"}, {"SLURM_NODEID", "0"}}));
  EXPECT_EQ(first.local_rank, 1);
  EXPECT_EQ(first.local_size, 2);
  EXPECT_EQ(first.master_port, seen.master_port);
}

TEST(LaunchEnvironment, DoesNotTakeTheBatchScriptOfSlurmForARank) {
  Variables batch = {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_NAME", "train.sh"}};
  std::string text = refusal(batch);
  EXPECT_NE(text.find("srun"), std::string::npos) << text;
  EXPECT_EQ(detect(with(batch, {{"SLURM_JOB_NAME", "bash"}})).size, 1) << "an interactive shell";
  EXPECT_EQ(detect(with(batch, {{"SLURM_NTASKS", "1"}})).size, 1);
  EXPECT_EQ(detect(with(batch, kTorchrun)).launcher, "torchrun") << "torchrun in a batch script";
  // What sbatch passes on when a task of another job calls it.
  text = refusal(with(batch, {{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_STEP_ID", "0"}}));
  EXPECT_NE(text.find("SLURM_STEP_NUM_TASKS=1 is of the job that submitted this one"),
            std::string::npos)
      << text;
}

TEST(LaunchEnvironment, RefusesTwoFamiliesThatDisagree) {
  std::string text = refusal(with(kOpenMpi4, kTorchrun));
  EXPECT_NE(text.find("Open MPI and torchrun disagree"), std::string::npos) << text;
  EXPECT_NE(text.find("OMPI_COMM_WORLD_RANK=3"), std::string::npos) << text;
  EXPECT_NE(text.find("RANK=5 WORLD_SIZE=8"), std::string::npos) << text;
  Variables equal =
      with(kTorchrun, {{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "2"}});
  EXPECT_EQ(detect(with(kOpenMpi4, equal)).launcher, "Open MPI");
}

TEST(LaunchEnvironment, AllowsOneDaemonOfSlurmAHostUnderAnotherLauncher) {
  Variables daemon = {{"SLURM_PROCID", "1"},  {"SLURM_STEP_NUM_TASKS", "2"},
                      {"SLURM_NODEID", "1"},  {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                      {"SLURM_LOCALID", "0"}, {"MASTER_ADDR", "n1"}};
  EXPECT_EQ(detect(with(kTorchrun, daemon)).size, 8);
  EXPECT_EQ(detect(with(kOpenMpi4, daemon)).size, 4);
  // srun started several tasks a host: those are the ranks, and stale variables contradict them.
  Variables singleton = {{"RANK", "0"}, {"WORLD_SIZE", "1"}};
  EXPECT_NE(refusal(with(kSlurm, singleton)).find("torchrun and Slurm disagree"),
            std::string::npos);
}

TEST(LaunchEnvironment, NamesTheVariableWithABadNumber) {
  EXPECT_NE(refusal(with(kTorchrun, {{"RANK", "five"}})).find("RANK=five: expected a whole number"),
            std::string::npos);
  EXPECT_NE(refusal(with(kTorchrun, {{"RANK", "8"}})).find("RANK=8: expected a number from 0 to 7"),
            std::string::npos);
  EXPECT_NE(refusal(with(kTorchrun, {{"MASTER_PORT", "0"}})).find("MASTER_PORT=0"),
            std::string::npos);
  EXPECT_NE(refusal(with(kTorchrun, {{"LOCAL_RANK", "4"}})).find("LOCAL_RANK=4"),
            std::string::npos);
  EXPECT_NE(refusal(with(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "2(y)"}}))
                .find("SLURM_STEP_TASKS_PER_NODE=2(y)"),
            std::string::npos);
}

TEST(LaunchEnvironment, RefusesAnIncompleteFamily) {
  EXPECT_NE(refusal({{"WORLD_SIZE", "2"}}).find("RANK is not set"), std::string::npos);
  EXPECT_NE(refusal({{"PMIX_RANK", "1"}}).find("PMIX_RANK"), std::string::npos);
}

TEST(LaunchEnvironment, ClearListRemovesEveryFamily) {
  Variables all = with(with(kOpenMpi4, kTorchrun), kSlurm);
  all.insert({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}, {"LOCKSTEP_RANK", "1"}});
  all.insert({{"MV2_COMM_WORLD_RANK", "0"}, {"MV2_COMM_WORLD_SIZE", "2"}});
  for (const std::string& name : clear_list()) all.erase(name);
  EXPECT_EQ(detect(all).launcher, "none");
  std::set<std::string> once(clear_list().begin(), clear_list().end());
  EXPECT_EQ(once.size(), clear_list().size());
}

TEST(SlurmLists, ExpandHosts) {
  auto hosts = [](const std::string& list) { return expand_slurm_hosts(list, "V"); };
  using List = std::vector<std::string>;
  EXPECT_EQ(hosts("gnode[10,20,25-27]"),
            (List{"gnode10", "gnode20", "gnode25", "gnode26", "gnode27"}));
  EXPECT_EQ(hosts("n[008-010].a,login"), (List{"n008.a", "n009.a", "n010.a", "login"}));
  EXPECT_EQ(hosts("r[1-2]n[1-2]"), (List{"r1n1", "r1n2", "r2n1", "r2n2"}));
  for (const char* bad :
       {"n[1-", "n[2-1]", "n[a]", "n]1[", "", "a,,b", "n[[1]]", "n[1-999999999]"}) {
    EXPECT_THROW(hosts(bad), ConfigError) << bad;
  }
}

TEST(SlurmLists, ExpandTasks) {
  EXPECT_EQ(expand_slurm_tasks("2(x3),1", "V"), (std::vector<int>{2, 2, 2, 1}));
  EXPECT_EQ(expand_slurm_tasks("4", "V"), std::vector<int>{4});
  for (const char* bad : {"", "2(x", "2(x)", "(x2)", "0", "-1", "2(x99999999)", "2,"}) {
    EXPECT_THROW(expand_slurm_tasks(bad, "V"), ConfigError) << bad;
  }
}

}  // namespace
}  // namespace lockstep
