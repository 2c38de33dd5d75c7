// A host that is lost, and another machine under another name and address that takes its place.
#include <gtest/gtest.h>

#include "support/apart_runs.h"
#include "support/instances.h"

namespace lockstep {
namespace {

using std::chrono::seconds;

class Replacement : public ApartRuns {
 protected:
  // A job on n1 and n2, which the list names at first.
  std::unique_ptr<HostProgram> start(HostsApart& hosts, const std::string& options,
                                     std::vector<std::string> environment = {}) {
    write_instances(hosts, list(), {"n1", "n2"});
    environment.push_back("OMP_NUM_THREADS=1");
    const std::string words = fmt::format(
        "launch --push --instances-command 'cat instances.json' --host-timeout 15 --host-poll 1 "
        "--silence 3 --replacement-wait 100 {} -- train tiny.toml run.folder=run "
        "training.steps=10000000 checkpoint.every=20",
        options);
    return hosts.start("control", {"/bin/sh", "-c", lockstep_here(words)}, environment);
  }
  fs::path list() const { return desk() / "instances.json"; }
};

TEST_F(Replacement, AMachineOfALaterListIsSetUpAndGoesOnInThePlaceOfALostOne) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  HostsApart hosts({.names = {"n1", "n2", "n3"}, .program = ApartProgram::kSetUp});
  auto job = start(hosts, "");
  job->expect("saved ");
  hosts.power_off("n2");
  job->expect("too few hosts are there: waiting up to 1 m 40 s for others");
  write_instances(hosts, list(), {"n1", "n3"});
  job->expect("host n3 takes the place of n2");
  job->expect("attempt 1: 2 ranks on 2 of 2 hosts");
  job->expect("saved ", "resumed from");
  job->signal(SIGTERM);
  EXPECT_EQ(job->wait(seconds(60)), 143) << job->output();
  const std::string log = read_file(hosts.file("n3", "lockstep/desk/run/logs/rank01.log"));
  EXPECT_NE(log.find("resumed from"), std::string::npos) << log;
}

// Google's metadata server of one host: it has no notice until the file `gone` is there.
constexpr const char* kCloud = R"(
import http.server, os
class Cloud(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'TRUE' if os.path.exists('gone') else b'FALSE')
    def log_message(self, *words):
        pass
print('serving', flush=True)
http.server.HTTPServer(('127.0.0.1', 8081), Cloud).serve_forever()
)";

TEST_F(Replacement, ComesAfterANoticeThatOneHostsAgentHears) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  HostsApart hosts({.names = {"n1", "n2", "n3"}, .program = ApartProgram::kSetUp});
  hosts.put_text("n2", "cloud.py", kCloud);
  auto cloud = hosts.start_as_user("n2", "cd && exec /usr/bin/python3 cloud.py");
  cloud->expect("serving");
  auto job = start(hosts, "--spot google --grace 10", {"LOCKSTEP_METADATA=http://127.0.0.1:8081"});
  job->expect("saved ");
  hosts.put_text("n2", "gone", "");
  job->expect("host n2 is taken away by google");
  write_instances(hosts, list(), {"n1", "n3"});
  job->expect("host n3 takes the place of n2");
  job->expect("attempt 1: 2 ranks on 2 of 2 hosts");
  job->expect("resumed from");
  job->signal(SIGTERM);
  EXPECT_EQ(job->wait(seconds(60)), 143) << job->output();
}

}  // namespace
}  // namespace lockstep
