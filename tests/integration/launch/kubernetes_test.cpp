// The Job of docs/examples/kubernetes.yaml, its pods made by hand: virtual hosts that share
// nothing, with the variables that the file gives each container.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>

#include "support/expect_says.h"
#include "support/tiny_runs.h"
#include "support/unshared_lab.h"
#include "support/virtual_hosts.h"

namespace lockstep {
namespace {

using namespace std::chrono_literals;

// What the file says of a container: its words, and its variables but for RANK, which is the pod's
// index.
struct Container {
  std::vector<std::string> words;
  std::map<std::string, std::string> environment;
};

Container read_example() {
  Container out;
  const std::string text = read_file(LOCKSTEP_SOURCE "/docs/examples/kubernetes.yaml");
  std::smatch found;
  EXPECT_TRUE(std::regex_search(text, found, std::regex("command: (\\[.*\\])")));
  out.words = nlohmann::json::parse(found[1].str()).get<std::vector<std::string>>();
  const std::regex variable("- name: ([A-Z_]+)\n +value: \"?([^\"\n]+)\"?\n");
  for (std::sregex_iterator at(text.begin(), text.end(), variable), end; at != end; ++at) {
    out.environment[(*at)[1]] = (*at)[2];
  }
  EXPECT_TRUE(std::regex_search(text, std::regex("- name: RANK\n.*\n.*\n +fieldPath: "
                                                 "metadata.annotations\\['batch.kubernetes.io/"
                                                 "job-completion-index'\\]")));
  return out;
}

class Kubernetes : public TinyRuns {
 protected:
  void SetUp() override {
    TinyRuns::SetUp();
    SKIP_WITHOUT_VIRTUAL_HOSTS();
    hosts_ = std::make_unique<VirtualHosts>(unshared_lab({"nmt-0", "nmt-1"}, folder_->path()));
    container_ = read_example();
  }
  void TearDown() override { hosts_.reset(); }

  // Starts the container of a pod again while it fails, as restartPolicy: OnFailure does. The steps
  // are in a file of the pod, which the container waits for.
  std::unique_ptr<HostProgram> start_pod(int index, int64_t steps) {
    std::vector<std::string> variables = {
        fmt::format("RANK={}", index), "OMP_NUM_THREADS=1",
        "PATH=" + fs::path(LOCKSTEP_PROGRAM).parent_path().string() + ":/usr/bin:/bin"};
    for (const auto& [name, value] : container_.environment)
      variables.push_back(name + "=" + value);
    const std::string shell = fmt::format(
        "mkdir -p /config /runs; cp {}/tiny.toml /config/nmt.toml; echo {} >/config/steps; until "
        "'{}' "
        "training.steps=$(cat /config/steps) checkpoint.every=50; do sleep 1; "
        "until [ -s /config/steps ]; do sleep 0.1; done; done",
        folder_->path().string(), steps, join(container_.words, "' '"));
    return hosts_->start(pod(index), {"/bin/sh", "-c", shell}, variables);
  }
  static std::string pod(int index) { return fmt::format("nmt-{}", index); }
  // The Service's name for pod 0 becomes known to both.
  void publish() {
    for (int index : {0, 1}) {
      std::ofstream(hosts_->lab().folder() / "hosts" / pod(index) / "etc_hosts", std::ios::app)
          << hosts_->lab().address(pod(0)) << " " << container_.environment.at("MASTER_ADDR")
          << "\n";
    }
  }
  fs::path run_of(int index) const {
    return hosts_->lab().path_on_this_machine(pod(index), "/runs/nmt");
  }
  void wait_for_checkpoint(int index, int64_t step) const {
    const fs::path done = run_of(index) / fmt::format("checkpoints/step_{}/DONE", step);
    for (int i = 0; i < 6000 && !fs::exists(done); ++i) std::this_thread::sleep_for(10ms);
    ASSERT_TRUE(fs::exists(done)) << done;
  }

  std::unique_ptr<VirtualHosts> hosts_;
  Container container_;
};

TEST_F(Kubernetes, PodsStartInAnyOrderAndOneIsStartedAgain) {
  const int64_t endless = 1000000;  // pods are lost before the last step, however fast steps are
  auto second = start_pod(1, endless);
  std::this_thread::sleep_for(2s);  // its peer's name is not known yet
  auto first = start_pod(0, endless);
  publish();
  wait_for_checkpoint(0, 50);
  hosts_->run(pod(1), "pkill -9 -f '[l]ockstep train'");  // its container, which starts at once
  wait_for_checkpoint(0, 500);
  hosts_->run(pod(0), "rm /config/steps");
  hosts_->power_off(pod(1));  // its node; another pod takes its place later
  first->expect("no sign of life");
  const int64_t last = metrics_of(run_of(0), "step").back().at("step").get<int64_t>() + 200;
  hosts_->run(pod(0), fmt::format("echo {} >/config/steps", last));
  hosts_->power_on(pod(1));
  second = start_pod(1, last);
  ASSERT_EQ(first->wait(120s), 0) << first->output() << second->output();
  ASSERT_EQ(second->wait(30s), 0) << second->output();
  EXPECT_EQ(metrics_of(run_of(0), "resume").size(), 2u) << first->output();
  EXPECT_EQ(metrics_of(run_of(0), "step").back().at("step"), last);
  EXPECT_TRUE(fs::exists(run_of(1) / fmt::format("checkpoints/step_{}/DONE", last)));
}

}  // namespace
}  // namespace lockstep
