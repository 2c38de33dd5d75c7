// lockstep doctor on this machine and on virtual hosts that have nothing in common.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/apart_runs.h"

namespace lockstep {
namespace {

using nlohmann::json;
using std::chrono::seconds;

// The findings of a check that are not ok, by host.
std::map<std::string, json> troubles(const json& report, const std::string& check) {
  std::map<std::string, json> out;
  for (const json& finding : report.at("findings")) {
    if (finding.at("check") == check && finding.at("verdict") != "ok") {
      out[finding.at("host")] = finding;
    }
  }
  return out;
}

class DoctorCommand : public ApartRuns {
 protected:
  static void SetUpTestSuite() {
    ApartRuns::SetUpTestSuite();
    if (!no_virtual_hosts().empty()) return;
    hosts_ = new HostsApart(
        {.network = "rate_mbit = 100\ndelay_ms = 5", .hosts = "private = ['/mnt']\ndisk_mb = 1"});
    hosts_->put_all(folder_->path() / "desk", "work");
    for (const char* host : {"a", "b"}) {
      hosts_->run(host, fmt::format("chown {} /mnt", hosts_->user(host)));
    }
  }
  static void TearDownTestSuite() {
    delete hosts_;
    hosts_ = nullptr;
    ApartRuns::TearDownTestSuite();
  }

  struct Report {
    int exit_code = -1;
    json report;
    std::string text;
  };
  // `lockstep doctor --json WORDS` in the control host.
  Report doctor(const std::string& words) const {
    auto [code, text] = hosts_->run(
        "control",
        "export OMP_NUM_THREADS=1; " + lockstep_here("doctor --json --cwd '~/work' " + words),
        seconds(60));
    return {code, json::parse(text, nullptr, false), text};
  }
  // A program that stands for lockstep on the hosts; `script` has the real one as $REAL.
  std::string program(const std::string& name, const std::string& script) const {
    const fs::path path = fs::path("/srv") / name;
    for (const char* host : {"a", "b"}) {
      const fs::path here = hosts_->lab().path_on_this_machine(host, path);
      write_file(here, fmt::format("#!/bin/bash\nREAL='{}'\n{}\n", HostsApart::kProgram, script));
      ::chmod(here.c_str(), 0755);
    }
    return path.string();
  }

  inline static HostsApart* hosts_ = nullptr;
};

TEST_F(DoctorCommand, LooksAtThisMachineWithoutHosts) {
  ProgramResult result = run_lockstep(fmt::format("doctor {}/tiny.toml run.folder={} --json",
                                                  folder_->path().string(), run("one").string()));
  EXPECT_EQ(result.exit_code, 0) << result.errors << result.output;
  json report = json::parse(result.output);
  ASSERT_EQ(report.at("hosts").size(), 1u);
  const json& host = report.at("hosts")[0];
  EXPECT_GT(host.at("speed").at("fp32_flops").get<double>(), 1e9);
  EXPECT_GT(host.at("speed").at("copied_bytes_per_second").get<double>(), 1e8);
  EXPECT_GT(host.at("facts").at("memory_bytes").get<double>(), 1e8);
  EXPECT_EQ(host.at("facts").at("corpus").at("problem"), "");
  EXPECT_TRUE(troubles(report, "files").empty());
  EXPECT_LT(report.at("seconds").get<double>(), 20);
}

TEST_F(DoctorCommand, MeasuresTwoHostsAndTheNetworkBetweenThem) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  Report r = doctor("-H a,b tiny.toml run.folder=two");
  ASSERT_FALSE(r.report.is_discarded()) << r.text;
  EXPECT_EQ(r.exit_code, 0) << r.text;
  ASSERT_EQ(r.report.at("links").size(), 1u);
  const json& link = r.report.at("links")[0];
  EXPECT_EQ(link.at("failure"), "");
  // 100 Mbit/s carry 11.8 MB/s; a queue that is still full at the end adds a little.
  EXPECT_NEAR(link.at("to_streams").get<double>(), 11.8e6, 4e6);
  EXPECT_NEAR(link.at("from_streams").get<double>(), 11.8e6, 4e6);
  EXPECT_GT(link.at("round_trip_seconds").get<double>(), 0.0099);
  EXPECT_GT(r.report.at("all_reduce").at("gradient_seconds").get<double>(), 0.01);
  EXPECT_EQ(r.report.at("hosts")[0].at("address"), hosts_->lab().address("a"));
  EXPECT_EQ(troubles(r.report, "tcp").size(), 2u);  // slow start after idle, 10 ms away
  EXPECT_LT(r.report.at("seconds").get<double>(), 20);
}

TEST_F(DoctorCommand, NamesAnotherVersionAndAWrongClock) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  std::string other = program("other", R"sh(if [ "$(hostname)" = b ]; then
  "$REAL" "$@" | sed -u 's/"lockstep":"[^"]*"/"lockstep":"0.0.1"/; s/"time":1\([0-9]\)/"time":2\1/'
else
  exec "$REAL" "$@"
fi)sh");
  Report r = doctor("-H a,b --program-on-hosts " + other);
  ASSERT_FALSE(r.report.is_discarded()) << r.text;
  EXPECT_EQ(r.exit_code, 4);
  auto versions = troubles(r.report, "versions");
  ASSERT_EQ(versions.count("b"), 1u) << r.text;
  EXPECT_EQ(versions["b"].at("seen"), "lockstep 0.0.1");
  EXPECT_EQ(troubles(r.report, "clock").count("b"), 1u) << r.text;
}

TEST_F(DoctorCommand, NamesEveryHostThatCannotBeUsedAndChecksTheOthers) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  std::string absent = program("absent", R"sh([ "$(hostname)" = b ] && exit 127
exec "$REAL" "$@")sh");
  Report r = doctor("-H a,b,nosuchhost --program-on-hosts " + absent);
  ASSERT_FALSE(r.report.is_discarded()) << r.text;
  EXPECT_EQ(r.exit_code, 4);
  auto reach = troubles(r.report, "reach");
  EXPECT_EQ(reach.size(), 2u);
  EXPECT_NE(reach["b"].dump().find("lockstep"), std::string::npos) << reach["b"];
  EXPECT_NE(reach["nosuchhost"].dump().find("resolve"), std::string::npos) << reach["nosuchhost"];
  EXPECT_TRUE(r.report.at("hosts")[0].at("answers"));

  r = doctor("-H a -o PubkeyAuthentication=no");
  ASSERT_FALSE(r.report.is_discarded()) << r.text;
  EXPECT_EQ(r.exit_code, 4);
  EXPECT_EQ(troubles(r.report, "reach").count("a"), 1u) << r.text;
}

TEST_F(DoctorCommand, FailsADiskThatIsTooSmallAndFilesThatAreNotThere) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  Report r = doctor("-H a,b tiny.toml run.folder=/mnt/run");
  ASSERT_FALSE(r.report.is_discarded()) << r.text;
  EXPECT_EQ(r.exit_code, 4);
  EXPECT_EQ(troubles(r.report, "disk").size(), 2u) << r.text;  // 1 MB each

  hosts_->run("a", fmt::format("cp -r {}/work/corpus /mnt/corpus", hosts_->home("a").string()));
  r = doctor("-H a,b tiny.toml run.folder=three data.corpus=/mnt/corpus");
  ASSERT_FALSE(r.report.is_discarded()) << r.text;
  EXPECT_EQ(r.exit_code, 4);
  auto files = troubles(r.report, "files");
  EXPECT_EQ(files.size(), 1u) << r.text;
  EXPECT_EQ(files.count("b"), 1u);
}

}  // namespace
}  // namespace lockstep
